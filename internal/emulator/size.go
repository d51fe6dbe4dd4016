package emulator

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// size is the value of a flag such as 8MiB, in bytes. MiB is 2^20 bytes, MB is 10^6 bytes.
type size int64

var units = []struct {
	name  string
	bytes float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

// String returns the value as Set reads it.
func (s *size) String() string {
	n := int64(*s)
	if n == 0 {
		return "" // there is no default to show
	}
	text := strconv.FormatInt(n, 10)
	for _, u := range units[:3] {
		if n%int64(u.bytes) == 0 {
			text = strconv.FormatInt(n/int64(u.bytes), 10) + u.name
		}
	}
	return text
}

// Set parses text.
func (s *size) Set(text string) error {
	for _, u := range units {
		number, ok := cutUnit(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if bytes := n * u.bytes; err == nil && bytes >= 0 && bytes < math.MaxInt64 {
			*s = size(bytes)
			return nil
		}
		break
	}
	return errors.New("want a size such as 8MiB")
}

// cutUnit removes a unit from the end of text, in upper or lower case.
func cutUnit(text, unit string) (number string, ok bool) {
	at := len(text) - len(unit)
	if at < 0 || !strings.EqualFold(text[at:], unit) {
		return "", false
	}
	return text[:at], true
}
