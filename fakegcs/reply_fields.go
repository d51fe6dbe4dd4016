package fakegcs

import (
	"bytes"
	"encoding/json"
	"strings"
)

// fieldMask is a parsed fields parameter,
// https://cloud.google.com/storage/docs/json_api#partial-response. It maps each
// selected name to the mask of its value. A nil mask selects everything.
type fieldMask map[string]fieldMask

const errFields = serviceText("Invalid field selection")

// parseFields parses a list such as "a,b/c,d(e,f/g)". "*" selects every name.
func parseFields(s string) (fieldMask, error) {
	m, rest, err := parseFieldList(s, 0)
	if err != nil || rest != "" {
		return nil, errFields
	}
	return m, nil
}

// parseFieldList parses a list up to its end or a ")", and returns the rest.
func parseFieldList(s string, depth int) (fieldMask, string, error) {
	if depth > 10 {
		return nil, "", errFields
	}
	m := fieldMask{}
	for {
		at := m
		for {
			end := strings.IndexAny(s, ",/()")
			if end < 0 {
				end = len(s)
			}
			name := strings.TrimSpace(s[:end])
			if name == "" {
				return nil, "", errFields
			}
			s = s[end:]
			inner, known := at[name]
			switch {
			case strings.HasPrefix(s, "/"):
				if !known || inner == nil {
					inner = fieldMask{}
				}
				at[name] = inner
				at, s = inner, s[1:]
				continue
			case strings.HasPrefix(s, "("):
				list, rest, err := parseFieldList(s[1:], depth+1)
				if err != nil || !strings.HasPrefix(rest, ")") {
					return nil, "", errFields
				}
				at[name], s = list, rest[1:]
			default:
				at[name] = nil
			}
			break
		}
		if !strings.HasPrefix(s, ",") {
			return m, s, nil
		}
		s = s[1:]
	}
}

// apply returns the selected part of a decoded JSON value.
func (m fieldMask) apply(v any) any {
	if m == nil {
		return v
	}
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = m.apply(v[i])
		}
	case map[string]any:
		for name, value := range v {
			inner, wanted := m[name]
			if !wanted {
				inner, wanted = m["*"]
			}
			if wanted {
				v[name] = inner.apply(value)
			} else {
				delete(v, name)
			}
		}
	}
	return v
}

// cut returns the selected part of a JSON body. It does not change other bodies.
func (m fieldMask) cut(body []byte) []byte {
	var v any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return body
	}
	less, err := encode(m.apply(v))
	if err != nil {
		return body
	}
	return less
}
