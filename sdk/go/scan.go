package envai

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// What is read is validated whole before anything is taken from it. The scanner works on a string so that texts
// without escapes are parts of it and cost no copy.

const maxDepth = 1000

var errSyntax = errors.New("not valid JSON")

// validJSON reports whether text is one JSON value in valid UTF-8, lone surrogates refused.
func validJSON(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	end, ok := skipValue(text, skipSpace(text, 0), 0)
	return ok && skipSpace(text, end) == len(text)
}

func skipSpace(text string, at int) int {
	for at < len(text) {
		switch text[at] {
		case ' ', '\t', '\n', '\r':
			at++
		default:
			return at
		}
	}
	return at
}

// skipValue is the end of the value that begins at `at`, and whether it is one.
func skipValue(text string, at, depth int) (int, bool) {
	if at >= len(text) || depth > maxDepth {
		return at, false
	}
	switch text[at] {
	case '{':
		return skipObject(text, at+1, depth+1)
	case '[':
		return skipArray(text, at+1, depth+1)
	case '"':
		return skipString(text, at+1)
	case 't':
		return at + 4, strings.HasPrefix(text[at:], "true")
	case 'f':
		return at + 5, strings.HasPrefix(text[at:], "false")
	case 'n':
		return at + 4, strings.HasPrefix(text[at:], "null")
	}
	return skipNumber(text, at)
}

func skipObject(text string, at, depth int) (int, bool) {
	at = skipSpace(text, at)
	if at < len(text) && text[at] == '}' {
		return at + 1, true
	}
	for at < len(text) && text[at] == '"' {
		end, ok := skipString(text, at+1)
		if end = skipSpace(text, end); !ok || end >= len(text) || text[end] != ':' {
			return end, false
		}
		end, ok = skipValue(text, skipSpace(text, end+1), depth)
		if end = skipSpace(text, end); !ok || end >= len(text) {
			return end, false
		}
		if text[end] == '}' {
			return end + 1, true
		}
		if text[end] != ',' {
			return end, false
		}
		at = skipSpace(text, end+1)
	}
	return at, false
}

func skipArray(text string, at, depth int) (int, bool) {
	at = skipSpace(text, at)
	if at < len(text) && text[at] == ']' {
		return at + 1, true
	}
	for {
		end, ok := skipValue(text, at, depth)
		if end = skipSpace(text, end); !ok || end >= len(text) {
			return end, false
		}
		if text[end] == ']' {
			return end + 1, true
		}
		if text[end] != ',' {
			return end, false
		}
		at = skipSpace(text, end+1)
	}
}

func skipString(text string, at int) (int, bool) {
	for at < len(text) {
		switch c := text[at]; {
		case c == '"':
			return at + 1, true
		case c < 0x20:
			return at, false
		case c == '\\':
			size, ok := escapeSize(text[at:])
			if !ok {
				return at, false
			}
			at += size
		default:
			at++
		}
	}
	return at, false
}

// escapeSize is the length of the escape that text begins with; a surrogate counts only with its other half.
func escapeSize(text string) (int, bool) {
	if len(text) < 2 {
		return 0, false
	}
	if text[1] != 'u' {
		return 2, strings.IndexByte(`"\/bfnrt`, text[1]) >= 0
	}
	r, ok := hexRune(text)
	if !ok || r >= 0xDC00 && r < 0xE000 {
		return 0, false
	}
	if !utf16.IsSurrogate(r) {
		return 6, true
	}
	low, ok := hexRune(text[6:])
	return 12, ok && low >= 0xDC00 && low < 0xE000
}

func hexRune(text string) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	value, err := strconv.ParseUint(text[2:6], 16, 32)
	return rune(value), err == nil
}

func skipNumber(text string, at int) (int, bool) {
	if at < len(text) && text[at] == '-' {
		at++
	}
	start := at
	at = skipDigits(text, at)
	if at == start || text[start] == '0' && at > start+1 {
		return at, false
	}
	if at < len(text) && text[at] == '.' {
		start = at + 1
		if at = skipDigits(text, start); at == start {
			return at, false
		}
	}
	if at < len(text) && (text[at] == 'e' || text[at] == 'E') {
		at++
		if at < len(text) && (text[at] == '+' || text[at] == '-') {
			at++
		}
		start = at
		if at = skipDigits(text, start); at == start {
			return at, false
		}
	}
	return at, true
}

func skipDigits(text string, at int) int {
	for at < len(text) && text[at] >= '0' && text[at] <= '9' {
		at++
	}
	return at
}

// eachField calls visit with every key and value of a valid object, in order.
func eachField(text string, visit func(key, value string) error) error {
	at := skipSpace(text, 0)
	if at >= len(text) || text[at] != '{' {
		return errSyntax
	}
	at = skipSpace(text, at+1)
	for text[at] != '}' {
		end, _ := skipString(text, at+1)
		key := unquote(text[at:end])
		at = skipSpace(text, skipSpace(text, end)+1)
		end, _ = skipValue(text, at, 0)
		if err := visit(key, text[at:end]); err != nil {
			return err
		}
		if at = skipSpace(text, end); text[at] == ',' {
			at = skipSpace(text, at+1)
		}
	}
	return nil
}

// eachItem calls visit with every element of a valid array.
func eachItem(text string, visit func(value string) error) error {
	at := skipSpace(text, 0)
	if at >= len(text) || text[at] != '[' {
		return errSyntax
	}
	at = skipSpace(text, at+1)
	for text[at] != ']' {
		end, _ := skipValue(text, at, 0)
		if err := visit(text[at:end]); err != nil {
			return err
		}
		if at = skipSpace(text, end); text[at] == ',' {
			at = skipSpace(text, at+1)
		}
	}
	return nil
}

// unquote is the text of a valid JSON string.
func unquote(text string) string {
	text = text[1 : len(text)-1]
	first := strings.IndexByte(text, '\\')
	if first < 0 {
		return text
	}
	out := make([]byte, first, len(text))
	copy(out, text)
	for at := first; at < len(text); {
		if text[at] != '\\' {
			out = append(out, text[at])
			at++
			continue
		}
		size, _ := escapeSize(text[at:])
		out = appendEscape(out, text[at:at+size])
		at += size
	}
	return string(out)
}

func appendEscape(out []byte, escape string) []byte {
	if escape[1] != 'u' {
		if i := strings.IndexByte("bfnrt", escape[1]); i >= 0 {
			return append(out, "\b\f\n\r\t"[i])
		}
		return append(out, escape[1])
	}
	r, _ := hexRune(escape)
	if len(escape) == 12 {
		low, _ := hexRune(escape[6:])
		r = utf16.DecodeRune(r, low)
	}
	return utf8.AppendRune(out, r)
}

// anyValue is a valid JSON value as plain Go values; integers that fit are int64, so that nothing is rounded.
func anyValue(text string) any {
	switch text[0] {
	case '{':
		out := map[string]any{}
		_ = eachField(text, func(key, value string) error { out[key] = anyValue(value); return nil })
		return out
	case '[':
		out := []any{}
		_ = eachItem(text, func(value string) error { out = append(out, anyValue(value)); return nil })
		return out
	case '"':
		return unquote(text)
	case 't':
		return true
	case 'f':
		return false
	case 'n':
		return nil
	}
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil {
		return whole
	}
	if number, err := strconv.ParseFloat(text, 64); err == nil {
		return number
	}
	return json.Number(text)
}
