package backoff

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter parses the value of a Retry-After header: a number of seconds or
// an HTTP date (https://www.rfc-editor.org/rfc/rfc9110#field.retry-after). A
// date is compared with now; a date in the past means 0.
//
// RetryAfter returns false if header is empty, a negative number or malformed.
// The result can be very long; [Policy.Wait] limits it.
func RetryAfter(header string, now time.Time) (time.Duration, bool) {
	header = strings.TrimSpace(header)
	if header == "" {
		return 0, false // most replies have no such header, and an error of ParseTime costs time
	}
	if isDigits(header) {
		seconds, err := strconv.ParseInt(header, 10, 64)
		if err != nil || seconds > int64(math.MaxInt64/time.Second) {
			return math.MaxInt64, true // more than 292 years
		}
		return time.Duration(seconds) * time.Second, true
	}
	date, err := http.ParseTime(header)
	if err != nil {
		return 0, false
	}
	return max(date.Sub(now), 0), true
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
