package envai

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// JSON Schema 2020-12, as far as tools use it, checked when a tool is registered: a keyword that this does not know how
// to keep is refused then and there, because arguments that were not checked are not valid.

type schemaCheck func(value any) bool

type schemaReader struct {
	root any
	refs map[string]*schemaCheck
}

// annotations say nothing about validity.
var annotations = strings.Fields(`$schema $id $comment $defs definitions $anchor title description default examples
	deprecated readOnly writeOnly format contentEncoding contentMediaType contentSchema`)

// companions are read by the keyword that they go with.
var companions = strings.Fields("then else minContains maxContains")

// compileSchema is a predicate for the JSON values that a schema allows. References never leave the document.
func compileSchema(schema any) (schemaCheck, error) {
	reader := &schemaReader{root: schema, refs: map[string]*schemaCheck{}}
	return reader.read(schema)
}

func (r *schemaReader) read(schema any) (schemaCheck, error) {
	if allowed, ok := schema.(bool); ok {
		return func(any) bool { return allowed }, nil
	}
	fields, ok := schema.(map[string]any)
	if !ok {
		return nil, errors.New("a schema is an object or a boolean")
	}
	var checks []schemaCheck
	for name, value := range fields {
		if slices.Contains(annotations, name) || slices.Contains(companions, name) {
			continue
		}
		keyword, known := r.keyword(name)
		if !known {
			return nil, fmt.Errorf("the keyword %q is not supported", name)
		}
		check, err := keyword(value, fields)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		checks = append(checks, check)
	}
	return all(checks), nil
}

func all(checks []schemaCheck) schemaCheck {
	return func(value any) bool {
		for _, check := range checks {
			if !check(value) {
				return false
			}
		}
		return true
	}
}

type schemaKeyword func(value any, fields map[string]any) (schemaCheck, error)

func (r *schemaReader) keyword(name string) (schemaKeyword, bool) {
	keywords := map[string]schemaKeyword{
		"$ref": r.ref, "type": readType, "enum": readEnum, "const": readConst,
		"properties": r.properties, "required": readRequired, "additionalProperties": r.additional,
		"patternProperties": r.patterns, "propertyNames": r.names, "dependentRequired": readDependent,
		"items": r.items, "prefixItems": r.prefix, "contains": r.contains, "uniqueItems": readUnique,
		"allOf": r.some(func(n, all int) bool { return n == all }), "anyOf": r.some(func(n, _ int) bool { return n > 0 }),
		"oneOf": r.some(func(n, _ int) bool { return n == 1 }), "not": r.not, "if": r.condition, "pattern": readPattern,
		"minimum":          bound(number, func(n, b float64) bool { return n >= b }),
		"maximum":          bound(number, func(n, b float64) bool { return n <= b }),
		"exclusiveMinimum": bound(number, func(n, b float64) bool { return n > b }),
		"exclusiveMaximum": bound(number, func(n, b float64) bool { return n < b }),
		"multipleOf":       bound(number, func(n, b float64) bool { q := n / b; return b > 0 && q == math.Trunc(q) }),
		"minLength":        bound(length, func(n, b float64) bool { return n >= b }),
		"maxLength":        bound(length, func(n, b float64) bool { return n <= b }),
		"minItems":         bound(items, func(n, b float64) bool { return n >= b }),
		"maxItems":         bound(items, func(n, b float64) bool { return n <= b }),
		"minProperties":    bound(members, func(n, b float64) bool { return n >= b }),
		"maxProperties":    bound(members, func(n, b float64) bool { return n <= b }),
	}
	keyword, known := keywords[name]
	return keyword, known
}

func number(value any) (float64, bool) {
	switch n := value.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

func length(value any) (float64, bool) {
	text, ok := value.(string)
	return float64(utf8.RuneCountInString(text)), ok
}

func items(value any) (float64, bool) {
	list, ok := value.([]any)
	return float64(len(list)), ok
}

func members(value any) (float64, bool) {
	object, ok := value.(map[string]any)
	return float64(len(object)), ok
}

func bound(measure func(any) (float64, bool), fits func(n, bound float64) bool) schemaKeyword {
	return func(value any, _ map[string]any) (schemaCheck, error) {
		limit, ok := number(value)
		if !ok {
			return nil, errors.New("must be a number")
		}
		return func(value any) bool { n, applies := measure(value); return !applies || fits(n, limit) }, nil
	}
}

func typeOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case int64:
		return "integer"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	}
	return "" // a number that no double holds
}

func readType(value any, _ map[string]any) (schemaCheck, error) {
	names, ok := texts(value)
	if name, single := value.(string); single {
		names, ok = []string{name}, true
	}
	known := strings.Fields("null boolean string array object number integer")
	for _, name := range names {
		ok = ok && slices.Contains(known, name)
	}
	if !ok {
		return nil, errors.New("must name types")
	}
	return func(value any) bool {
		kind := typeOf(value)
		return slices.Contains(names, kind) || kind == "integer" && slices.Contains(names, "number")
	}, nil
}

func texts(value any) ([]string, bool) {
	list, ok := value.([]any)
	var out []string
	for _, item := range list {
		text, isText := item.(string)
		ok = ok && isText
		out = append(out, text)
	}
	return out, ok
}

// same is JSON's equality: 1 and 1.0 are one number.
func same(a, b any) bool {
	x, isNumber := number(a)
	if y, also := number(b); isNumber || also {
		return isNumber && also && x == y
	}
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, same)
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, value := range a {
			other, has := b[key]
			if !has || !same(value, other) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

func readEnum(value any, _ map[string]any) (schemaCheck, error) {
	options, ok := value.([]any)
	if !ok {
		return nil, errors.New("must be a list")
	}
	return func(value any) bool {
		return slices.ContainsFunc(options, func(option any) bool { return same(option, value) })
	}, nil
}

func readConst(value any, _ map[string]any) (schemaCheck, error) {
	return func(other any) bool { return same(value, other) }, nil
}

func readRequired(value any, _ map[string]any) (schemaCheck, error) {
	names, ok := texts(value)
	if !ok {
		return nil, errors.New("must be a list of names")
	}
	return func(value any) bool { return hasAll(value, names) }, nil
}

func hasAll(value any, names []string) bool {
	object, ok := value.(map[string]any)
	for _, name := range names {
		if _, has := object[name]; ok && !has {
			return false
		}
	}
	return true
}

func readDependent(value any, _ map[string]any) (schemaCheck, error) {
	object, ok := value.(map[string]any)
	needs := map[string][]string{}
	for name, list := range object {
		names, isList := texts(list)
		needs[name], ok = names, ok && isList
	}
	if !ok {
		return nil, errors.New("must map names to lists of names")
	}
	return func(value any) bool {
		given, _ := value.(map[string]any)
		for name := range given {
			if !hasAll(value, needs[name]) {
				return false
			}
		}
		return true
	}, nil
}

func readUnique(value any, _ map[string]any) (schemaCheck, error) {
	wanted, ok := value.(bool)
	if !ok {
		return nil, errors.New("must be a boolean")
	}
	return func(value any) bool {
		list, _ := value.([]any)
		for i := range list {
			if wanted && slices.ContainsFunc(list[:i], func(other any) bool { return same(other, list[i]) }) {
				return false
			}
		}
		return true
	}, nil
}

func readPattern(value any, _ map[string]any) (schemaCheck, error) {
	text, ok := value.(string)
	if !ok {
		return nil, errors.New("must be text")
	}
	pattern, err := regexp.Compile(text)
	if err != nil {
		return nil, errors.New("is not a regular expression that Go knows")
	}
	return func(value any) bool { text, ok := value.(string); return !ok || pattern.MatchString(text) }, nil
}

// ref resolves a reference within the document; what refers to itself is resolved as it is used.
func (r *schemaReader) ref(value any, _ map[string]any) (schemaCheck, error) {
	text, _ := value.(string)
	if text != "#" && !strings.HasPrefix(text, "#/") {
		return nil, errors.New("must point into the document")
	}
	if known, ok := r.refs[text]; ok {
		return func(value any) bool { return (*known)(value) }, nil
	}
	target, err := r.find(text)
	if err != nil {
		return nil, err
	}
	slot := new(schemaCheck)
	r.refs[text] = slot
	check, err := r.read(target)
	*slot = check
	return check, err
}

func (r *schemaReader) find(pointer string) (any, error) {
	at := r.root
	for _, part := range strings.Split(strings.TrimPrefix(pointer, "#"), "/")[1:] {
		part, err := url.PathUnescape(part)
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		object, isObject := at.(map[string]any)
		next, ok := object[part]
		if list, isList := at.([]any); isList {
			i, bad := strconv.Atoi(part)
			if ok = bad == nil && i >= 0 && i < len(list); ok {
				next = list[i]
			}
		} else if !isObject {
			ok = false
		}
		if err != nil || !ok {
			return nil, errors.New("points to nothing")
		}
		at = next
	}
	return at, nil
}

// named compiles a map of schemas.
func (r *schemaReader) named(value any) (map[string]schemaCheck, error) {
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("must be an object")
	}
	out := map[string]schemaCheck{}
	for name, schema := range object {
		check, err := r.read(schema)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = check
	}
	return out, nil
}

func (r *schemaReader) properties(value any, _ map[string]any) (schemaCheck, error) {
	checks, err := r.named(value)
	return func(value any) bool {
		object, _ := value.(map[string]any)
		for name, item := range object {
			if check := checks[name]; check != nil && !check(item) {
				return false
			}
		}
		return true
	}, err
}

func (r *schemaReader) compiled(value any) (map[*regexp.Regexp]schemaCheck, error) {
	checks, err := r.named(value)
	out := map[*regexp.Regexp]schemaCheck{}
	for text, check := range checks {
		pattern, bad := regexp.Compile(text)
		if bad != nil {
			return nil, errors.New("is not a regular expression that Go knows")
		}
		out[pattern] = check
	}
	return out, err
}

func (r *schemaReader) patterns(value any, _ map[string]any) (schemaCheck, error) {
	checks, err := r.compiled(value)
	return func(value any) bool {
		object, _ := value.(map[string]any)
		for name, item := range object {
			for pattern, check := range checks {
				if pattern.MatchString(name) && !check(item) {
					return false
				}
			}
		}
		return true
	}, err
}

func (r *schemaReader) additional(value any, fields map[string]any) (schemaCheck, error) {
	check, err := r.read(value)
	if err != nil {
		return nil, err
	}
	known, _ := fields["properties"].(map[string]any)
	patterns := map[*regexp.Regexp]schemaCheck{}
	if given, has := fields["patternProperties"]; has {
		if patterns, err = r.compiled(given); err != nil {
			return nil, err
		}
	}
	return func(value any) bool {
		object, _ := value.(map[string]any)
		for name, item := range object {
			_, named := known[name]
			for pattern := range patterns {
				named = named || pattern.MatchString(name)
			}
			if !named && !check(item) {
				return false
			}
		}
		return true
	}, nil
}

func (r *schemaReader) names(value any, _ map[string]any) (schemaCheck, error) {
	check, err := r.read(value)
	return func(value any) bool {
		object, _ := value.(map[string]any)
		for name := range object {
			if !check(name) {
				return false
			}
		}
		return true
	}, err
}

func (r *schemaReader) items(value any, fields map[string]any) (schemaCheck, error) {
	check, err := r.read(value)
	prefix, _ := fields["prefixItems"].([]any)
	return func(value any) bool {
		list, _ := value.([]any)
		return !slices.ContainsFunc(list[min(len(prefix), len(list)):], func(item any) bool { return !check(item) })
	}, err
}

func (r *schemaReader) list(value any) ([]schemaCheck, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, errors.New("must be a list")
	}
	var out []schemaCheck
	for _, schema := range list {
		check, err := r.read(schema)
		if err != nil {
			return nil, err
		}
		out = append(out, check)
	}
	return out, nil
}

func (r *schemaReader) prefix(value any, _ map[string]any) (schemaCheck, error) {
	checks, err := r.list(value)
	return func(value any) bool {
		list, _ := value.([]any)
		for i, item := range list[:min(len(list), len(checks))] {
			if !checks[i](item) {
				return false
			}
		}
		return true
	}, err
}

func (r *schemaReader) contains(value any, fields map[string]any) (schemaCheck, error) {
	check, err := r.read(value)
	least, most := 1.0, math.Inf(1)
	if n, ok := number(fields["minContains"]); ok {
		least = n
	}
	if n, ok := number(fields["maxContains"]); ok {
		most = n
	}
	return func(value any) bool {
		list, ok := value.([]any)
		found := 0.0
		for _, item := range list {
			if check(item) {
				found++
			}
		}
		return !ok || found >= least && found <= most
	}, err
}

func (r *schemaReader) some(enough func(n, all int) bool) schemaKeyword {
	return func(value any, _ map[string]any) (schemaCheck, error) {
		checks, err := r.list(value)
		return func(value any) bool {
			n := 0
			for _, check := range checks {
				if check(value) {
					n++
				}
			}
			return enough(n, len(checks))
		}, err
	}
}

func (r *schemaReader) not(value any, _ map[string]any) (schemaCheck, error) {
	check, err := r.read(value)
	return func(value any) bool { return !check(value) }, err
}

func (r *schemaReader) condition(value any, fields map[string]any) (schemaCheck, error) {
	branches := [3]schemaCheck{}
	for i, schema := range []any{value, fields["then"], fields["else"]} {
		if schema == nil {
			schema = true
		}
		check, err := r.read(schema)
		if err != nil {
			return nil, err
		}
		branches[i] = check
	}
	return func(value any) bool {
		if branches[0](value) {
			return branches[1](value)
		}
		return branches[2](value)
	}, nil
}
