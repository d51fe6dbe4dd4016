package clientcheck

import (
	"time"

	"gcsup/fakegcs/faults"
)

// Cost is what a client spent. It is no part of the verdict.
type Cost struct {
	Requests int           `json:"requests"`
	Sent     int64         `json:"sent"`  // bytes of the object that the service received
	Twice    int64         `json:"twice"` // those of Sent beyond the size of the source
	Blind    int           `json:"blind"` // data requests after a failed one, without a status query in between
	Open     int           `json:"open"`  // sessions and multipart uploads that the client left open
	Others   int           `json:"others,omitempty"`
	Elapsed  time.Duration `json:"-"`
}

func costOf(e Evidence) Cost {
	c := Cost{Requests: len(e.Exchanges), Open: e.Open, Others: e.Others, Elapsed: e.Elapsed}
	failed := map[int]bool{} // by session: its latest data request failed, and no query has followed
	for i := range e.Exchanges {
		x := &e.Exchanges[i]
		if x.data() {
			n := x.Received
			if x.Op == faults.OpInsert { // with metadata
				n = min(n, e.Size)
			}
			c.Sent += n
			if failed[x.Session] && x.Session != 0 {
				c.Blind++
			}
			failed[x.Session] = x.Status == 0 || x.Status == 408 || x.Status == 429 || x.Status >= 500
		} else if x.Op == faults.OpQuery || x.Op == faults.OpFinalize {
			failed[x.Session] = false
		}
	}
	c.Twice = max(0, c.Sent-e.Size)
	return c
}
