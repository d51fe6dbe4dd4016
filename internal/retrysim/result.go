package retrysim

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// A Result is the result of one policy.
type Result struct {
	Policy   string   `json:"policy"` // with the suffix "+breaker" if clients shared circuit breakers
	Requests int64    `json:"requests"`
	Wasted   int64    `json:"wasted"`            // requests that were not served
	Peak     int64    `json:"peak_per_s"`        // most requests in a second in which the server was up
	P50      Time     `json:"p50_s"`             // when half of the clients had been served
	P99      Time     `json:"p99_s"`             // when 99 % had been served
	All      Time     `json:"all_s"`             // when all had been served
	MaxWait  Time     `json:"max_wait_s"`        // longest backoff of a client, without waits at a breaker
	Failed   int      `json:"failed"`            // clients that stopped, or were not served by the end of the run
	CutOff   bool     `json:"cut_off,omitempty"` // the run was stopped because of too many requests; "never" and Failed are meaningless
	Load     []Second `json:"-"`                 // load in each second
}

// Second is the load in one second.
type Second struct {
	Requests, Served int64
	Capacity         int64 // at its begin, of a server that is up and has no ramp
}

// Time is a duration, or a time since the start of a run. A negative one means never.
type Time time.Duration

// String returns t rounded to tenths of a second.
func (t Time) String() string {
	if t < 0 {
		return "never"
	}
	return fmt.Sprintf("%.1f s", time.Duration(t).Seconds())
}

// MarshalJSON returns t in seconds, rounded to milliseconds, or null.
func (t Time) MarshalJSON() ([]byte, error) {
	if t < 0 {
		return []byte("null"), nil
	}
	return json.Marshal(float64(time.Duration(t).Round(time.Millisecond).Milliseconds()) / 1000)
}

// WriteTable writes the results as a text table.
func WriteTable(w io.Writer, s Scenario, results []Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", s.Name, s.About)
	fmt.Fprintf(&b, "%d clients, %d requests/s, outage of %v\n\n", s.Clients, s.Capacity, s.Outage)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "policy\trequests\twasted\tpeak/s\t50 %\t99 %\tall\tfailed\tlongest wait\t")
	cut := ""
	for _, r := range results {
		if r.CutOff {
			cut += fmt.Sprintf("\n%s was cut off after %d requests, with clients left that would have been served: give more capacity\n", r.Policy, r.Requests)
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\t%s\t%s\t%d\t%s\t\n", r.Policy, r.Requests, r.Wasted, r.Peak,
			r.P50, r.P99, r.All, r.Failed, r.MaxWait)
	}
	t.Flush() // a write to memory does not fail
	fmt.Fprintf(&b, "\npeak/s: requests in the worst second with the server up; 50 %%, 99 %%, all: served by then; %s\n",
		"failed: gave up, or not served by the end")
	b.WriteString(cut)
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteJSON writes each result as a JSON object on one line. A time is null for
// never. cut_off is present, and true, only if the run was cut off.
func WriteJSON(w io.Writer, results []Result) error {
	encoder := json.NewEncoder(w)
	for _, r := range results {
		if err := encoder.Encode(r); err != nil {
			return err
		}
	}
	return nil
}
