package benchrun

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// measured is what a run took.
type measured struct {
	wall, cpu float64 // seconds
	resident  float64 // greatest resident memory of the process, in MiB
	extra     float64
}

// result has the runs of a way.
type result struct {
	wall, cpu, resident, extra []float64
}

func (r *result) add(m measured) {
	r.wall = append(r.wall, m.wall)
	r.cpu = append(r.cpu, m.cpu)
	r.resident = append(r.resident, m.resident)
	r.extra = append(r.extra, m.extra)
}

// table returns the results as a table. Its ratios are those of each run to the run of
// the baseline just before it.
func (c Comparison) table(results []result) string {
	var out strings.Builder
	t := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "way\twall s\tCPU s\t%s/s\tCPU ms/%s\tresident MiB\t", c.Unit, c.Unit)
	if c.Extra != nil {
		fmt.Fprint(t, c.ExtraTitle, "\t")
	}
	base := results[0]
	fmt.Fprintf(t, "wall, of %[1]s\tCPU, of %[1]s\t\n", c.Ways[0].Name)
	for i, r := range results {
		fmt.Fprintf(t, "%s\t%v\t%v\t%s\t%s\t%s\t", c.Ways[i].Name, spreadOf(r.wall), spreadOf(r.cpu),
			number(c.Work/spreadOf(r.wall).median), number(spreadOf(r.cpu).median*1000/c.Work), number(spreadOf(r.resident).median))
		if c.Extra != nil {
			fmt.Fprint(t, number(spreadOf(r.extra).median), "\t")
		}
		if i == 0 {
			fmt.Fprint(t, "1\t1\t\n")
			continue
		}
		fmt.Fprintf(t, "%v\t%v\t\n", spreadOf(ratios(r.wall, base.wall)), spreadOf(ratios(r.cpu, base.cpu)))
	}
	_ = t.Flush() // a strings.Builder does not fail
	return out.String()
}

// spread summarizes the values of several runs.
type spread struct{ median, least, greatest float64 }

func spreadOf(values []float64) spread {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return spread{(v[(n-1)/2] + v[n/2]) / 2, v[0], v[n-1]}
}

// String returns the median, with the least and the greatest value.
func (s spread) String() string {
	return fmt.Sprintf("%s (%s-%s)", number(s.median), number(s.least), number(s.greatest))
}

// ratios divides the values of each run by those of the same run of the baseline.
func ratios(values, base []float64) []float64 {
	divided := make([]float64, len(values))
	for i := range values {
		divided[i] = values[i] / base[i]
	}
	return divided
}

// number formats a whole number, or about three digits of another one.
func number(v float64) string {
	switch {
	case v == math.Trunc(v):
		return fmt.Sprint(v)
	case v < 1:
		return fmt.Sprintf("%.3f", v)
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
