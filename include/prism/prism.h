// Everything a user of the library needs.
#pragma once

#include "base/error.h"
#include "dsl/dsl.h"
#include "grad/grad.h"
#include "kernels/library.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "runtime/device.h"
#include "runtime/discovery.h"
#include "tensor/compile.h"
#include "tensor/plan.h"
#include "tensor/tensor.h"
