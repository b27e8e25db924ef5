"""Generated pictures: ordered, looked after, read back; and the uploads that they begin with."""

from crocevia.runtime.control.images.artifacts import artifact, artifact_url
from crocevia.runtime.control.images.orders import Order, create, get, models
from crocevia.runtime.control.images.uploads import MAX_UPLOAD, upload
from crocevia.runtime.painting.inputs import Input
from crocevia.storage.images import Artifact, Generation, Upload

__all__ = [
    "MAX_UPLOAD",
    "Artifact",
    "Generation",
    "Input",
    "Order",
    "Upload",
    "artifact",
    "artifact_url",
    "create",
    "get",
    "models",
    "upload",
]
