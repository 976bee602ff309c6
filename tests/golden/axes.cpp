/* axes.h in C++: its names are constants that a template takes. */
#include "axes.h"

template <nst_op OP, nst_types TYPES, nst_access ACCESS> constexpr int place = NST_ROWS_INDEX(OP, TYPES, 0, 0, ACCESS);

static_assert(place<NST_OP_RMS_NORM_FWD, NST_TYPES_F16, NST_ACCESS_EXACT> == 0);
static_assert(NST_ROWS_INDEX(NST_OP_COUNT - 1, NST_TYPES_COUNT - 1, NST_BUCKET_ANY, NST_STRATEGY_COUNT - 1,
                             NST_ACCESS_COUNT - 1) == NST_ROWS_COUNT - 1);
static_assert(NST_CHOICE_INDEX(NST_ARCH_COUNT - 1, NST_OP_COUNT - 1, NST_TYPES_COUNT - 1, NST_BUCKET_ANY,
                               NST_ACCESS_COUNT - 1) == NST_CHOICE_COUNT - 1);

/* What an operation is made of, as device code takes it. */
constexpr int inputs[] = NST_OP_INPUTS, parameters[] = NST_OP_PARAMETERS, conditioning[] = NST_OP_CONDITIONING,
              statistic[] = NST_OP_STATISTIC;
static_assert(inputs[NST_OP_RMS_NORM_FWD] == 1 && inputs[NST_OP_FUSED_ADD_LAYER_NORM_FWD] == 2);
static_assert(parameters[NST_OP_RMS_NORM_FWD] == 1 && parameters[NST_OP_LAYER_NORM_FWD] == 2);
static_assert(parameters[NST_OP_ADA_LAYER_NORM_FWD] == 0 && conditioning[NST_OP_ADA_LAYER_NORM_FWD] == 2);
static_assert(conditioning[NST_OP_LAYER_NORM_FWD] == 0 && conditioning[NST_OP_ADA_LAYER_NORM_ZERO_FWD] == 3);
static_assert(statistic[NST_OP_RMS_NORM_FWD] == 1 && statistic[NST_OP_LAYER_NORM_FWD] == 2);
