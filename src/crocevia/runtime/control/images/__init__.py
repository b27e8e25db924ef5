"""Image generation as a resource: jobs, their artifacts, and uploaded input pictures."""

from crocevia.runtime.control.images.artifacts import artifact, artifact_url
from crocevia.runtime.control.images.jobs import ImageJob, create, get, models
from crocevia.runtime.control.images.uploads import MAX_UPLOAD, upload
from crocevia.runtime.image_generation.inputs import ImageInput
from crocevia.storage.images import Generation, ImageFile, Upload

__all__ = [
    "MAX_UPLOAD",
    "Generation",
    "ImageFile",
    "ImageInput",
    "ImageJob",
    "Upload",
    "artifact",
    "artifact_url",
    "create",
    "get",
    "models",
    "upload",
]
