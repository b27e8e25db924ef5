package envai

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"time"
)

const hidden = "***"

var (
	// Keys, bearer tokens and anything shaped like a JWT.
	tokenPattern = regexp.MustCompile(`(?i)envai_sk_[\w.\-]+|\bbearer\s+[^\s"',;]+|\beyJ[\w\-]{8,}\.[\w\-.]+`)
	urlPattern   = regexp.MustCompile(`(?i)\b(?:https?|wss?)://[^\s"'<>]+`)
	// What a text field may be called to be printed: names, states and ids, chosen by programs.
	plainNames = map[string]bool{}
)

func init() {
	for _, name := range strings.Fields(`aspect_ratio code currency alg basis crv error_code event_type finish_reason
		format id kid kind kty lifecycle media_type mime_type mode model outcome provider role scope_status status tool
		tool_name type use`) {
		plainNames[name] = true
	}
}

// scrub hides tokens and URL queries: for messages written by others.
func scrub(text string) string {
	return urlPattern.ReplaceAllStringFunc(tokenPattern.ReplaceAllString(text, hidden), safeURL)
}

// safeURL is what may be logged of a signed URL.
func safeURL(text string) string {
	parsed, err := url.Parse(text)
	if err != nil {
		return hidden
	}
	safe := parsed.Scheme + "://" + parsed.Host + parsed.EscapedPath()
	if parsed.RawQuery != "" {
		safe += "?" + hidden
	}
	return safe
}

// secret is a text that never prints itself.
type secret struct{ value string }

func (secret) String() string               { return hidden }
func (secret) GoString() string             { return hidden }
func (secret) LogValue() slog.Value         { return slog.StringValue(hidden) }
func (secret) MarshalJSON() ([]byte, error) { return json.Marshal(hidden) }

func writeRedacted(f fmt.State, value any) { _, _ = f.Write([]byte(redactedText(value))) }

func redactedValue(value any) slog.Value { return slog.StringValue(redactedText(value)) }

// redactedText prints ids, states, numbers and times as they are, and of texts how long they are.
func redactedText(value any) string {
	v := reflect.ValueOf(value)
	kind := v.Type()
	var fields []string
	for i := range kind.NumField() {
		field := kind.Field(i)
		if !field.IsExported() || field.Name == "Extra" {
			continue
		}
		if text := shown(wireName(field), v.Field(i)); text != "" {
			fields = append(fields, field.Name+":"+text)
		}
	}
	return kind.Name() + "{" + strings.Join(fields, " ") + "}"
}

func wireName(field reflect.StructField) string {
	for _, place := range []string{"json", "query", "header", "form", "file"} {
		if name, _, _ := strings.Cut(field.Tag.Get(place), ","); name != "" && name != "-" {
			return name
		}
	}
	return strings.ToLower(field.Name)
}

func shown(name string, v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return ""
		}
		return shown(name, v.Elem())
	case reflect.String:
		if (plainNames[name] || strings.HasSuffix(name, "_id")) && v.Len() <= 255 {
			return scrub(v.String())
		}
		return fmt.Sprintf("<%d bytes>", v.Len())
	case reflect.Bool, reflect.Int64, reflect.Int, reflect.Float64:
		return fmt.Sprint(v.Interface())
	case reflect.Slice, reflect.Map:
		return fmt.Sprintf("<%d items>", v.Len())
	case reflect.Struct:
		return shownStruct(name, v.Interface())
	}
	return "<" + v.Kind().String() + ">"
}

func shownStruct(name string, value any) string {
	switch value := value.(type) {
	case time.Time:
		return value.Format(time.RFC3339Nano)
	case interface{ held() (any, bool) }:
		inner, ok := value.held()
		if !ok {
			return ""
		}
		return shown(name, reflect.ValueOf(inner))
	case fmt.Formatter:
		return fmt.Sprint(value)
	}
	return "<struct>"
}
