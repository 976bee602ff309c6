/* The kernel image as read-only data of the archive. normstatic.fatbin is found through the include path (-I). */

        .section .rodata.nst_image, "a", %progbits

        .balign 64
        .globl  nst_image
        .hidden nst_image
        .type   nst_image, %object
nst_image:
        .incbin "normstatic.fatbin"
.Lend:
        .size   nst_image, .Lend - nst_image

        .balign 8
        .globl  nst_image_size
        .hidden nst_image_size
        .type   nst_image_size, %object
nst_image_size:
        .8byte  .Lend - nst_image
        .size   nst_image_size, 8

/* Without this note linkers would ask for an executable stack. */
        .section .note.GNU-stack, "", %progbits
