package fakegcs

import "time"

// timeFormat is the format of times in replies. They always have three decimals:
// internal/compat/recorded.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// timestamp is a time in a reply.
type timestamp struct{ time.Time }

// MarshalJSON implements [json.Marshaler].
func (t timestamp) MarshalJSON() ([]byte, error) {
	return t.AppendFormat(make([]byte, 0, len(timeFormat)+2), `"`+timeFormat+`"`), nil
}
