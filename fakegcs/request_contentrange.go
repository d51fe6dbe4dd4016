package fakegcs

import (
	"math"
	"strconv"
	"strings"
)

// contentRange is a parsed Content-Range request header. The forms of
// https://cloud.google.com/storage/docs/performing-resumable-uploads and the
// open-ended ones that the Node and Rust clients send:
//
//	bytes a-b/T  bytes a-b/*   a chunk
//	bytes a-*/T  bytes a-*/*   a body of unknown length
//	bytes */T    bytes */*     a status query; no body
type contentRange struct {
	query bool  // "*": first and last mean nothing
	first int64 // of the body's first byte
	last  int64 // of its last byte, or -1 if the length of the body is unknown
	total int64 // size of the object, or -1: not known yet
}

const errContentRange = serviceText("Failed to parse Content-Range header.")

// parseContentRange parses the value of a Content-Range header.
func parseContentRange(s string) (contentRange, error) {
	spec, ok := strings.CutPrefix(s, "bytes ")
	if !ok {
		return contentRange{}, errContentRange
	}
	span, size, ok := strings.Cut(spec, "/")
	if !ok {
		return contentRange{}, errContentRange
	}
	c := contentRange{last: -1, total: -1}
	if size != "*" {
		if c.total, ok = parseOffset(size); !ok {
			return contentRange{}, errContentRange
		}
	}
	if span == "*" {
		c.query = true
		return c, nil
	}
	from, to, ok := strings.Cut(span, "-")
	if !ok {
		return contentRange{}, errContentRange
	}
	if c.first, ok = parseOffset(from); !ok {
		return contentRange{}, errContentRange
	}
	if to == "*" {
		return c, nil
	}
	if c.last, ok = parseOffset(to); !ok || c.last < c.first {
		return contentRange{}, errContentRange
	}
	return c, nil
}

// parseOffset parses a non-negative decimal without sign or spaces. It
// refuses the largest offset, so that offset+1 cannot overflow.
func parseOffset(s string) (int64, bool) {
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err == nil && n < math.MaxInt64
}

// length returns the number of bytes in the body, or -1.
func (c contentRange) length() int64 {
	if c.query {
		return 0
	}
	if c.last < 0 {
		return -1
	}
	return c.last - c.first + 1
}
