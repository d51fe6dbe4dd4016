// Package strictjson decodes JSON that people wrote: unknown fields are errors,
// and the errors do not name Go types.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Decode decodes data, the JSON at path in a larger text. It refuses unknown fields,
// and its errors describe the wanted type in words.
func Decode(data []byte, v any, path ...string) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // its own text names Go types
		want := "an object"
		switch wrong.Type.Kind() {
		case reflect.Int, reflect.Int64:
			want = "a whole number"
		case reflect.String:
			want = "text"
		case reflect.Bool:
			want = "true or false"
		}
		if wrong.Field != "" {
			path = append(path, wrong.Field)
		}
		if len(path) == 0 {
			return fmt.Errorf("want %s, not %s", want, wrong.Value)
		}
		return fmt.Errorf("%s: want %s, not %s", strings.Join(path, "."), want, wrong.Value)
	}
	return err
}
