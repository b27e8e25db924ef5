package envai

import (
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The bounds that the contract sets on fields of payloads, by the names that generated tags use.

var formats = map[string]func(string) bool{
	"turn_id":   func(text string) bool { return isID("cmpl_", text) },
	"agent_id":  func(text string) bool { return isID("ag_", text) },
	"call_id":   func(text string) bool { return isID("tc_", text) },
	"date_time": func(text string) bool { _, ok := parseMoment(text); return ok },
	"title":     isTitle,
	"currency":  func(text string) bool { return len(text) == 3 && strings.Trim(text, letters) == "" },
	"decimal":   isDecimal,
	"sha256":    func(text string) bool { return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == "" },
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// checksOf reads a tag such as "ge=0,le=1" or "turn_id".
func checksOf(tag string) []func(reflect.Value) error {
	var out []func(reflect.Value) error
	for _, word := range strings.Split(tag, ",") {
		if word == "" {
			continue
		}
		name, bound, _ := strings.Cut(word, "=")
		out = append(out, checkOf(name, bound))
	}
	return out
}

func checkOf(name, bound string) func(reflect.Value) error {
	fits := fitOf(name, bound)
	want := strings.TrimSpace(name + " " + bound)
	return func(value reflect.Value) error {
		if value.Kind() == reflect.Pointer {
			if value.IsNil() {
				return nil
			}
			value = value.Elem()
		}
		if !fits(value) {
			return expected(want)
		}
		return nil
	}
}

func fitOf(name, bound string) func(reflect.Value) bool {
	if format, ok := formats[name]; ok {
		return func(value reflect.Value) bool { return format(value.String()) }
	}
	number, _ := strconv.ParseFloat(bound, 64)
	switch name {
	case "ge":
		return func(value reflect.Value) bool { return numberOf(value) >= number }
	case "gt":
		return func(value reflect.Value) bool { return numberOf(value) > number }
	case "le":
		return func(value reflect.Value) bool { return numberOf(value) <= number }
	case "max_length":
		return func(value reflect.Value) bool {
			return value.Len() <= int(number) || utf8.RuneCountInString(value.String()) <= int(number)
		}
	case "one":
		options := strings.Split(bound, "|")
		return func(value reflect.Value) bool {
			for _, option := range options {
				if value.String() == option {
					return true
				}
			}
			return false
		}
	}
	panic("envai: unknown check " + name)
}

func numberOf(value reflect.Value) float64 {
	if value.CanInt() {
		return float64(value.Int())
	}
	return value.Float()
}

// isID reports whether text is prefix and a ULID, its letters in either case.
func isID(prefix, text string) bool {
	body, ok := strings.CutPrefix(text, prefix)
	if !ok || len(body) != 26 || body[0] < '0' || body[0] > '7' {
		return false
	}
	for i := 1; i < len(body); i++ {
		if !ulidLetter[body[i]] {
			return false
		}
	}
	return true
}

var ulidLetter = func() (known [256]bool) {
	for _, c := range "0123456789abcdefghjkmnpqrstvwxyz" {
		known[c], known[unicode.ToUpper(c)] = true, true
	}
	return known
}()

// isTitle: one line with something to read in it, at most 255 characters.
func isTitle(text string) bool {
	return !strings.ContainsAny(text, "\r\n\v\f\u0085\u2028\u2029") && utf8.RuneCountInString(text) <= 255 &&
		strings.IndexFunc(text, func(r rune) bool { return !isBlank(r) }) >= 0
}

// isBlank is what the contract's \s matches: what Unicode calls a space, and the four separators of ASCII.
func isBlank(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

func isDecimal(text string) bool {
	whole, fraction, dotted := strings.Cut(text, ".")
	digits := func(part string) bool { return part != "" && strings.Trim(part, "0123456789") == "" }
	return digits(whole) && (whole == "0" || whole[0] != '0') && (!dotted || digits(fraction))
}

// parseMoment reads an RFC 3339 time of any precision. A time whose shape is right but which no calendar has (a leap
// second, 30 February) is the zero time: valid, and earlier than every other.
func parseMoment(text string) (time.Time, bool) {
	if !isMoment(text) {
		return time.Time{}, false
	}
	moment, err := time.Parse(time.RFC3339Nano, strings.ToUpper(text))
	if err != nil {
		return time.Time{}, true
	}
	return moment, true
}

func isMoment(text string) bool {
	if len(text) < 20 || !shaped(text[:19], "0000-00-00T00:00:00") {
		return false
	}
	month, day, hour := text[5:7], text[8:10], text[11:13]
	minute, second := text[14:16], text[17:19]
	if month < "01" || month > "12" || day < "01" || day > "31" || hour > "23" || minute > "59" || second > "60" {
		return false
	}
	rest := text[19:]
	if rest[0] == '.' {
		end := skipDigits(rest, 1)
		if end == 1 {
			return false
		}
		rest = rest[end:]
	}
	if rest == "Z" || rest == "z" {
		return true
	}
	return len(rest) == 6 && (rest[0] == '+' || rest[0] == '-') && shaped(rest[1:], "00:00") && rest[1:3] <= "23" && rest[4:6] <= "59"
}

func shaped(text, shape string) bool {
	for i := range len(shape) {
		c := text[i]
		switch shape[i] {
		case '0':
			if c < '0' || c > '9' {
				return false
			}
		case 'T':
			if c != 'T' && c != 't' {
				return false
			}
		default:
			if c != shape[i] {
				return false
			}
		}
	}
	return true
}

func (c *CostState) check() error {
	complete := c.Status == "complete"
	settled := c.ScopeStatus == "closed" && c.PendingInvocationCount == 0
	if complete != (c.Totals != nil) || complete && !settled {
		return expected("totals with a complete, closed scope and with nothing else")
	}
	return nil
}
