package retrysim

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

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
			text(r.P50), text(r.P99), text(r.All), r.Failed, text(r.MaxWait))
	}
	t.Flush() // a write to memory does not fail
	fmt.Fprintf(&b, "\npeak/s: requests in the worst second with the server up; 50 %%, 99 %%, all: served by then; %s\n",
		"failed: gave up, or not served by the end")
	b.WriteString(cut)
	_, err := io.WriteString(w, b.String())
	return err
}

// text returns d rounded to tenths of a second, or "never" if d is negative.
func text(d time.Duration) string {
	if d < 0 {
		return "never"
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// WriteJSON writes each result as a JSON object on one line. A time is null for
// never. cut_off is present, and true, only if the run was cut off.
func WriteJSON(w io.Writer, results []Result) error {
	encoder := json.NewEncoder(w)
	for _, r := range results {
		if err := encoder.Encode(struct {
			Policy   string   `json:"policy"`
			Requests int64    `json:"requests"`
			Wasted   int64    `json:"wasted"`
			Peak     int64    `json:"peak_per_s"`
			P50      *float64 `json:"p50_s"`
			P99      *float64 `json:"p99_s"`
			All      *float64 `json:"all_s"`
			MaxWait  float64  `json:"max_wait_s"`
			Failed   int      `json:"failed"`
			CutOff   bool     `json:"cut_off,omitempty"`
		}{r.Policy, r.Requests, r.Wasted, r.Peak, seconds(r.P50), seconds(r.P99), seconds(r.All), *seconds(r.MaxWait), r.Failed, r.CutOff}); err != nil {
			return err
		}
	}
	return nil
}

// seconds returns d in seconds, rounded to milliseconds.
func seconds(d time.Duration) *float64 {
	if d < 0 {
		return nil
	}
	s := float64(d.Round(time.Millisecond).Milliseconds()) / 1000
	return &s
}
