"""License seats: pods that use licensed software wait until their pool has a seat left."""
