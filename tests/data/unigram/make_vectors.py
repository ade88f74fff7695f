#!/usr/bin/env python3
"""Trains a small SentencePiece unigram model and writes what it makes of texts.

Needs the packages sentencepiece and tokenizers, which segment texts independently of Prism.
    make_vectors.py [FOLDER]
writes unigram.model, and unigram.json with texts[] and ids[] of each. Where white space at the ends
is not at stake, tokenizers' Unigram must give the same ids, or the script fails.
"""
import base64
import json
import pathlib
import random
import sys
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

# A few replacements in place of NFKC, whose table has 240 KB: wide letters, ligatures, several
# characters that become one, one that becomes several, and white space.
RULES = {"ﬁ": "fi", "ﬂ": "fl", "e\u0301": "\u00e9", "…": "...", "㍿": "株式会社", "\t": " ", "\n": " ",
         "\u3000": " ", "\u00a0": " ", "\u200b": "", "½": "1/2", "ǆ": "dž"}
RULES.update({chr(0xFF21 + i): chr(0x41 + i) for i in range(26)})
RULES.update({chr(0xFF41 + i): chr(0x61 + i) for i in range(26)})
WORDS = ("the of and in to a is was for on as by with at from it that his he are were which this be "
         "walking walked walker talk talking talked token tokens tokenizer unigram segment segmentation "
         "probability likely likelihood café fiancée naïve 中文 文字 株式会社 привет мир über straße 1/2 3.14").split()


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        text, rules = scratch / "text", scratch / "rules.tsv"
        text.write_text("\n".join(" ".join(rng.choices(WORDS, k=12)) for _ in range(400)), encoding="utf-8")
        hexes = lambda s: " ".join(f"{ord(c):X}" for c in s)
        rules.write_text("".join(f"{hexes(a)}\t{hexes(b)}\n" for a, b in RULES.items()), encoding="utf-8")
        sentencepiece.SentencePieceTrainer.Train(
            input=str(text), model_prefix=str(scratch / "m"), vocab_size=150, hard_vocab_limit=False, model_type="unigram",
            character_coverage=1.0, normalization_rule_tsv=str(rules), pad_id=3, minloglevel=2)
        made = (scratch / "m.model").read_bytes()
    (folder / "unigram.model").write_bytes(made)
    sp = sentencepiece.SentencePieceProcessor(model_proto=made)
    pieces = list(RULES) + WORDS + list(" \t\u3000  \u00a0▁zqЖ") + ["  ", " \n ", "walk", "ing"]
    texts = ["", " ", "the walker", "  two  spaces  ", "ｗａｌｋ ﬁne café", "zzz qq unknown 字字", "a▁b", "\u200b", "…½㍿"]
    texts += ["".join(rng.choices(pieces, k=rng.randrange(1, 14))) for _ in range(120)]
    texts += [" ".join(rng.choices(WORDS, k=9)) for _ in range(20)]
    ids = [sp.encode(each) for each in texts]

    proto = sentencepiece_model_pb2.ModelProto.FromString(made)
    other = Tokenizer(models.Unigram([(p.piece, p.score) for p in proto.pieces], unk_id=sp.unk_id()))
    other.normalizer = normalizers.Sequence([
        normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap),
        normalizers.Replace(Regex(" {2,}"), " ")])
    other.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    compared = 0
    for each, want in zip(texts, ids):
        normal = other.normalizer.normalize_str(each)
        if normal != normal.strip() or "▁" in each or not normal:
            continue  # tokenizers keeps white space at the ends
        found = other.encode(each, add_special_tokens=False).ids
        assert found == want, (each, found, want)
        compared += 1
    (folder / "unigram.json").write_text(
        json.dumps({"texts": texts, "ids": ids}, ensure_ascii=True) + "\n", encoding="utf-8")
    print(f"{len(made)} bytes, {len(texts)} texts, {compared} also by tokenizers")


if __name__ == "__main__":
    main()
