package main

import (
	"fmt"
	"time"

	"gcsup/fakegcs"
)

// cost is what the server received of uploads.
type cost struct {
	received  int64 // bytes of data
	committed int64 // of these, bytes that the server had already reported as committed
}

// costOf adds up requests, in the order in which they ended.
func costOf(requests []fakegcs.Request) (cost, error) {
	var c cost
	held := map[string]int64{} // the committed offset that the server reported, of each object
	for _, r := range requests {
		var first, last int64
		switch r.Op {
		case fakegcs.OpPut, fakegcs.OpFinalize:
			if r.Received == 0 {
				break // all bytes were committed before
			}
			if _, err := fmt.Sscanf(r.ContentRange, "bytes %d-%d/", &first, &last); err != nil {
				return c, fmt.Errorf("Content-Range %q: %w", r.ContentRange, err)
			}
			c.received += r.Received
			c.committed += max(0, min(held[r.Object], first+r.Received)-first)
		case fakegcs.OpQuery:
		default:
			continue
		}
		if r.Range != "" {
			if _, err := fmt.Sscanf(r.Range, "bytes=0-%d", &last); err != nil {
				return c, fmt.Errorf("Range %q: %w", r.Range, err)
			}
			held[r.Object] = max(held[r.Object], last+1)
		}
	}
	return c, nil
}

// lastContinued returns the arrival of the last request that asks how much is committed, which is
// the first one over the connection that replaces another. If there is none, it returns the
// arrival of the first request.
func lastContinued(requests []fakegcs.Request) time.Time {
	var first, last time.Time
	for _, r := range requests {
		if first.IsZero() || r.Time.Before(first) {
			first = r.Time
		}
		if r.Op == fakegcs.OpQuery && r.Time.After(last) {
			last = r.Time
		}
	}
	if last.IsZero() {
		return first
	}
	return last
}
