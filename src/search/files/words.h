// The words of texts and questions in the form in which they are compared.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace prism::search {

// Calls visit for each word of the text: folded (lower case, without accents, English endings
// removed), with its bytes. An identifier is a word, and so is each of its parts: parseHTTPHeader
// is parsehttpheader, parse, http and header. A Chinese character is a word.
void each_word(std::string_view text,
               const std::function<void(const std::string& word, size_t begin, size_t end)>& visit);

// The different words of a question, without those that every text has ("where", "is", "the") if
// any remain.
std::vector<std::string> question_words(std::string_view question);

// Removes the endings of an English word in lower case: "caches", "cached" and "caching" become
// "cach". Short words stay.
std::string stem(std::string word);

}  // namespace prism::search
