package session

import (
	"gcsup/internal/checksum"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// unprintable reports whether text has a control character or is not valid UTF-8. The service
// refuses it.
func unprintable(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl)
}

// timeText returns t in the format of RFC 3339, or "" if t is zero.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// boolText returns "on", or "" if b is false.
func boolText(b bool) string {
	if b {
		return "on"
	}
	return ""
}

// number returns the decimal digits of *n, or "" if n is nil.
func number(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

// crcText returns the text form of *crc32c, or "" if crc32c is nil.
func crcText(crc32c *uint32) string {
	if crc32c == nil {
		return ""
	}
	return checksum.Encode(*crc32c)
}
