package envai

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Decoding is strict: a field that the contract requires must be there, null only where it may be, numbers are no
// texts. encoding/json guesses in all three cases; a guess here would be an answer that nobody gave.

type decoder func(text string, into reflect.Value) error

// mismatch says where a value is not what the contract says, and never what it is.
type mismatch struct{ path, want string }

func (m *mismatch) Error() string {
	if m.path == "" {
		return "expected " + m.want
	}
	return m.path + ": expected " + m.want
}

func under(name string, err error) error {
	if m, ok := err.(*mismatch); ok {
		if m.path != "" && !strings.HasPrefix(m.path, "[") {
			name += "."
		}
		return &mismatch{name + m.path, m.want}
	}
	return err
}

func expected(what string) error { return &mismatch{want: what} }

// decodeInto fills a pointer from valid JSON.
func decodeInto(text string, target any) error {
	value := reflect.ValueOf(target).Elem()
	return decoderOf(value.Type())(text, value)
}

var (
	decoders sync.Map // reflect.Type -> decoder
	timeType = reflect.TypeFor[time.Time]()
	anyType  = reflect.TypeFor[any]()
)

func decoderOf(kind reflect.Type) decoder {
	if known, ok := decoders.Load(kind); ok {
		return known.(decoder)
	}
	made := makeDecoder(kind)
	decoders.Store(kind, made)
	return made
}

func makeDecoder(kind reflect.Type) decoder {
	switch {
	case kind == timeType:
		return decodeTime
	case kind == anyType:
		return func(text string, into reflect.Value) error { setAny(into, anyValue(text)); return nil }
	}
	switch kind.Kind() {
	case reflect.String:
		return decodeString
	case reflect.Bool:
		return decodeBool
	case reflect.Int64, reflect.Int:
		return decodeInt
	case reflect.Float64:
		return decodeFloat
	case reflect.Pointer:
		return decodePointer(kind)
	case reflect.Slice:
		return decodeSlice(kind)
	case reflect.Map:
		return decodeMap
	case reflect.Struct:
		return decodeStruct(kind)
	}
	panic("envai: no decoder for " + kind.String())
}

func setAny(into reflect.Value, value any) {
	if value == nil {
		into.SetZero()
	} else {
		into.Set(reflect.ValueOf(value))
	}
}

func decodeString(text string, into reflect.Value) error {
	if text[0] != '"' {
		return expected("text")
	}
	into.SetString(unquote(text))
	return nil
}

func decodeBool(text string, into reflect.Value) error {
	if text != "true" && text != "false" {
		return expected("a boolean")
	}
	into.SetBool(text == "true")
	return nil
}

func decodeInt(text string, into reflect.Value) error {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return expected("an integer")
	}
	into.SetInt(value)
	return nil
}

func decodeFloat(text string, into reflect.Value) error {
	if text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return expected("a number")
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return expected("a number")
	}
	into.SetFloat(value)
	return nil
}

func decodeTime(text string, into reflect.Value) error {
	if text[0] != '"' {
		return expected("a time")
	}
	value, err := time.Parse(time.RFC3339Nano, unquote(text))
	if err != nil {
		return expected("a time")
	}
	into.Set(reflect.ValueOf(value))
	return nil
}

func decodePointer(kind reflect.Type) decoder {
	inner := decoderOf(kind.Elem())
	return func(text string, into reflect.Value) error {
		if text == "null" {
			into.SetZero()
			return nil
		}
		value := reflect.New(kind.Elem())
		if err := inner(text, value.Elem()); err != nil {
			return err
		}
		into.Set(value)
		return nil
	}
}

func decodeSlice(kind reflect.Type) decoder {
	inner := decoderOf(kind.Elem())
	return func(text string, into reflect.Value) error {
		if text[0] != '[' {
			return expected("a list")
		}
		out := reflect.MakeSlice(kind, 0, 0)
		err := eachItem(text, func(item string) error {
			value := reflect.New(kind.Elem()).Elem()
			if err := inner(item, value); err != nil {
				return under(fmt.Sprintf("[%d]", out.Len()), err)
			}
			out = reflect.Append(out, value)
			return nil
		})
		into.Set(out)
		return err
	}
}

func decodeMap(text string, into reflect.Value) error {
	if text[0] != '{' {
		return expected("an object")
	}
	into.Set(reflect.ValueOf(anyValue(text)))
	return nil
}

// checker is what a payload says beyond its fields.
type checker interface{ check() error }

type fieldPlan struct {
	name     string
	index    int
	bit      uint64
	required bool
	nullable bool
	decode   decoder
	checks   []func(reflect.Value) error
}

type structPlan struct {
	fields   map[string]*fieldPlan
	required uint64
	closed   bool
	extra    int
	checks   bool
}

func decodeStruct(kind reflect.Type) decoder {
	var once sync.Once
	var plan *structPlan
	return func(text string, into reflect.Value) error {
		once.Do(func() { plan = planOf(kind) }) // at first use: types may name each other
		return plan.decode(text, into)
	}
}

func planOf(kind reflect.Type) *structPlan {
	plan := &structPlan{fields: map[string]*fieldPlan{}, extra: -1, checks: reflect.PointerTo(kind).Implements(reflect.TypeFor[checker]())}
	for i := range kind.NumField() {
		field := kind.Field(i)
		name, rest, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Name == "_":
			plan.closed = field.Tag.Get("payload") == "closed"
			continue
		case !field.IsExported():
			continue
		case field.Name == "Extra":
			plan.extra = i
			continue
		}
		entry := &fieldPlan{name: name, index: i, bit: 1 << len(plan.fields), decode: decoderOf(field.Type)}
		entry.required, entry.nullable = !strings.Contains(rest, "omitempty"), strings.Contains(rest, "nullable")
		entry.checks = checksOf(field.Tag.Get("check"))
		plan.fields[name] = entry
		if entry.required {
			plan.required |= entry.bit
		}
	}
	return plan
}

func (p *structPlan) decode(text string, into reflect.Value) error {
	if text[0] != '{' {
		return expected("an object")
	}
	var seen uint64
	err := eachField(text, func(key, value string) error {
		field := p.fields[key]
		if field == nil {
			return p.unknown(key, value, into)
		}
		seen |= field.bit
		return field.fill(value, into.Field(field.index))
	})
	if err != nil {
		return err
	}
	if missing := p.required &^ seen; missing != 0 {
		return expected("a field " + p.named(missing))
	}
	if p.checks {
		return into.Addr().Interface().(checker).check()
	}
	return nil
}

func (p *structPlan) named(bits uint64) string {
	for name, field := range p.fields {
		if field.bit&bits != 0 {
			return strconv.Quote(name)
		}
	}
	return ""
}

func (p *structPlan) unknown(key, value string, into reflect.Value) error {
	if p.closed {
		return expected("no field " + strconv.Quote(key))
	}
	if p.extra >= 0 {
		extra := into.Field(p.extra)
		if extra.IsNil() {
			extra.Set(reflect.ValueOf(map[string]any{}))
		}
		held := reflect.New(anyType).Elem()
		setAny(held, anyValue(value))
		extra.SetMapIndex(reflect.ValueOf(key), held)
	}
	return nil
}

func (f *fieldPlan) fill(value string, into reflect.Value) error {
	if value == "null" && f.nullable {
		into.SetZero()
		return nil
	}
	if err := f.decode(value, into); err != nil {
		return under(f.name, err)
	}
	for _, check := range f.checks {
		if err := check(into); err != nil {
			return under(f.name, err)
		}
	}
	return nil
}

// marshal is encoding/json without its escaping of HTML: what is sent is what was given.
func marshal(value any) ([]byte, error) {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(out.String(), "\n")), nil
}
