package envai

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

var errNoCanonicalForm = errors.New("no canonical form")

// CanonicalJSON is the RFC 8785 form of a JSON document: what is signed. Numbers are binary64, as everywhere in JSON.
func CanonicalJSON(document []byte) ([]byte, error) {
	text := string(document)
	if !validJSON(text) {
		return nil, errNoCanonicalForm
	}
	return appendCanonical(nil, strings.TrimSpace(text))
}

func appendCanonical(out []byte, text string) ([]byte, error) {
	switch text[0] {
	case '{':
		return appendCanonicalObject(out, text)
	case '[':
		out = append(out, '[')
		var err error
		first := true
		walk := eachItem(text, func(item string) error {
			if !first {
				out = append(out, ',')
			}
			first = false
			out, err = appendCanonical(out, item)
			return err
		})
		return append(out, ']'), walk
	case '"':
		return appendCanonicalString(out, unquote(text)), nil
	case 't', 'f', 'n':
		return append(out, text...), nil
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, errNoCanonicalForm
	}
	return appendCanonicalNumber(out, number)
}

func appendCanonicalObject(out []byte, text string) ([]byte, error) {
	values := map[string]string{} // of a key that comes twice, the last
	_ = eachField(text, func(key, value string) error { values[key] = value; return nil })
	type member struct {
		key   string
		units []uint16
	}
	members := make([]member, 0, len(values))
	for key := range values {
		members = append(members, member{key, utf16.Encode([]rune(key))})
	}
	slices.SortFunc(members, func(a, b member) int { return slices.Compare(a.units, b.units) })
	out = append(out, '{')
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendCanonicalString(out, m.key), ':')
		var err error
		if out, err = appendCanonical(out, values[m.key]); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

func appendCanonicalString(out []byte, text string) []byte {
	out = append(out, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c >= 0x20:
			out = append(out, c)
		default:
			if short := strings.IndexByte("\b\f\n\r\t", c); short >= 0 {
				out = append(out, '\\', "bfnrt"[short])
			} else {
				out = append(out, '\\', 'u', '0', '0', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
			}
		}
	}
	return append(out, '"')
}

// appendCanonicalNumber writes a number as ECMAScript does.
func appendCanonicalNumber(out []byte, number float64) ([]byte, error) {
	size := math.Abs(number)
	switch {
	case math.IsNaN(number) || math.IsInf(number, 0):
		return nil, errNoCanonicalForm
	case number == 0:
		return append(out, '0'), nil
	case size >= 1e-6 && size < 1e21:
		return strconv.AppendFloat(out, number, 'f', -1, 64), nil
	}
	text := strconv.FormatFloat(number, 'e', -1, 64)
	mantissa, exponent, _ := strings.Cut(text, "e")
	return append(out, mantissa+"e"+exponent[:1]+strings.TrimLeft(exponent[1:], "0")...), nil
}
