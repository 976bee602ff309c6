/* Stands for the parameters: it counts for the build id. */
