// Language models: files, tokenizers, templates, placement, generation.
#pragma once

#include "prism/llm/chat_template.h"
#include "prism/llm/embedder.h"
#include "prism/llm/fit.h"
#include "prism/llm/generation.h"
#include "prism/llm/gguf.h"
#include "prism/llm/gguf_value.h"
#include "prism/llm/grammar.h"
#include "prism/llm/language_model.h"
#include "prism/llm/load_progress.h"
#include "prism/llm/memory.h"
#include "prism/llm/model_store.h"
#include "prism/llm/penalties.h"
#include "prism/llm/placement.h"
#include "prism/llm/sampler.h"
#include "prism/llm/scoring.h"
#include "prism/llm/tokenizer.h"
