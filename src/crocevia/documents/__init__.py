"""Files and URLs -> message parts, safely. `intake.take` is the entry; what a caller sends is hostile until read."""
