package envai

import "encoding/json"

// Optional is a parameter that may be left out, given, or given as null. Its zero value is left out.
type Optional[T any] struct {
	value T
	state optionalState
}

type optionalState uint8

const (
	absent optionalState = iota
	given
	null
)

// Set gives a parameter a value, the zero value included.
func Set[T any](value T) Optional[T] { return Optional[T]{value, given} }

// Null sends an explicit null, where the contract allows one.
func Null[T any]() Optional[T] { return Optional[T]{state: null} }

// IsZero reports whether the parameter is left out.
func (o Optional[T]) IsZero() bool { return o.state == absent }

// Get is the value, and whether there is one.
func (o Optional[T]) Get() (T, bool) { return o.value, o.state == given }

// MarshalJSON writes the value, or null.
func (o Optional[T]) MarshalJSON() ([]byte, error) {
	if o.state != given {
		return []byte("null"), nil
	}
	return json.Marshal(o.value)
}

func (o Optional[T]) held() (any, bool) { return o.value, o.state == given }
