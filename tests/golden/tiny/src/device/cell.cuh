/* Stands for the device code: it counts for the build id. */
