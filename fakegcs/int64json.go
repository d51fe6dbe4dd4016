package fakegcs

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// int64Text is a 64-bit number in JSON: written as a string, and read as a
// string or a number, as the service does.
type int64Text int64

// MarshalJSON implements [json.Marshaler].
func (n int64Text) MarshalJSON() ([]byte, error) {
	return []byte(`"` + strconv.FormatInt(int64(n), 10) + `"`), nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (n *int64Text) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil // like encoding/json
	}
	var text json.Number // decodes both
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	value, err := strconv.ParseInt(text.String(), 10, 64)
	if err != nil {
		return fmt.Errorf("%s is not a whole number", data)
	}
	*n = int64Text(value)
	return nil
}
