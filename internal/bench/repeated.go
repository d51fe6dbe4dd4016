package main

import (
	"fmt"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
)

// cost is what the server received of uploads.
type cost struct {
	received  int64 // bytes of data
	committed int64 // of these, bytes that the server had reported as committed before the request began
}

// costOf adds up requests.
func costOf(requests []fakegcs.Request) (cost, error) {
	var c cost
	for _, r := range requests {
		if r.Op != faults.OpPut && r.Op != faults.OpFinalize || r.Received == 0 {
			continue
		}
		var first, last int64
		if _, err := fmt.Sscanf(r.ContentRange, "bytes %d-%d/", &first, &last); err != nil {
			return c, fmt.Errorf("header Content-Range %q: %w", r.ContentRange, err)
		}
		held, err := reported(requests, r.Object, r.Time)
		if err != nil {
			return c, err
		}
		c.received += r.Received
		c.committed += max(0, min(held-first, r.Received))
	}
	return c, nil
}

// reported returns the committed offset of an object that the server had reported before a
// time.
func reported(requests []fakegcs.Request, object string, before time.Time) (offset int64, err error) {
	for _, r := range requests {
		if r.Object != object || r.Range == "" || r.Time.Add(r.Elapsed).After(before) {
			continue
		}
		var last int64
		if _, err := fmt.Sscanf(r.Range, "bytes=0-%d", &last); err != nil {
			return 0, fmt.Errorf("header Range %q: %w", r.Range, err)
		}
		offset = max(offset, last+1)
	}
	return offset, nil
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
		if r.Op == faults.OpQuery && r.Time.After(last) {
			last = r.Time
		}
	}
	if last.IsZero() {
		return first
	}
	return last
}
