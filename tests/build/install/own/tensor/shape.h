// The user's own header, of a name that Prism's sources have too.
#pragma once
inline constexpr int kOwnShape = 33;
