package session

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// ObjectContexts are the contexts of an object: keys and values by which a listing
// can be filtered, with permissions of their own.
// https://cloud.google.com/storage/docs/object-contexts
type ObjectContexts struct {
	Custom map[string]ObjectCustomContextPayload `json:"custom,omitempty"`
}

// ObjectCustomContextPayload is the value of a context. An upload sends Value. The
// service sets the times.
type ObjectCustomContextPayload struct {
	Value      string    `json:"value"`
	CreateTime time.Time `json:"createTime,omitzero"`
	UpdateTime time.Time `json:"updateTime,omitzero"`
}

// contextLimit bounds the characters of a context's key, and of its value.
const contextLimit = 256

// valid returns an error that wraps [ErrInvalid] if the service would refuse a key
// or a value.
// https://cloud.google.com/storage/docs/use-object-contexts#naming
func (c *ObjectContexts) valid() error {
	if c == nil {
		return nil
	}
	for key, payload := range c.Custom {
		for _, text := range []struct{ name, value string }{{"key", key}, {"value", payload.Value}} {
			first, _ := utf8.DecodeRuneInString(text.value)
			n := utf8.RuneCountInString(text.value)
			switch {
			case n == 0 || n > contextLimit:
				return invalid("the %s of the context %q has %d characters, want 1 to %d", text.name, key, n, contextLimit)
			case unprintable(text.value):
				return invalid("the context %q: %q has a control character or is not valid UTF-8", key, payload.Value)
			case !unicode.IsLetter(first) && !unicode.IsDigit(first):
				return invalid("the %s of the context %q: %q does not begin with a letter or a digit", text.name, key, payload.Value)
			}
		}
	}
	return nil
}

// sent returns the fields of c that an upload sends, or nil if there are none.
func (c *ObjectContexts) sent() *ObjectContexts {
	if c == nil || len(c.Custom) == 0 {
		return nil
	}
	custom := make(map[string]ObjectCustomContextPayload, len(c.Custom))
	for key, payload := range c.Custom {
		custom[key] = ObjectCustomContextPayload{Value: payload.Value}
	}
	return &ObjectContexts{Custom: custom}
}

// text returns c in a form that is equal for equal keys and values, or "" if there
// are none.
func (c *ObjectContexts) text() string {
	if c == nil {
		return ""
	}
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(c.Custom)) {
		lines = append(lines, key+"="+c.Custom[key].Value)
	}
	return strings.Join(lines, ", ")
}
