package benchrun

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// result has the figures of the runs of a way: for each figure, the values of all runs.
type result [][]float64

func (r *result) add(values []float64) {
	if *r == nil {
		*r = make(result, len(values))
	}
	for i, v := range values {
		(*r)[i] = append((*r)[i], v)
	}
}

// table returns the results as a table. Its ratios are those of each run to the run of
// the baseline just before it.
func (c Comparison) table(results []result) string {
	var out strings.Builder
	t := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(way string, figure, ratio func(i int) string) {
		cells := []string{way}
		for i := range c.Figures {
			cells = append(cells, figure(i))
		}
		for i, f := range c.Figures {
			if f.Ratio != "" {
				cells = append(cells, ratio(i))
			}
		}
		fmt.Fprintln(t, strings.Join(cells, "\t")+"\t")
	}
	line("way", func(i int) string { return c.Figures[i].Title }, func(i int) string { return c.Figures[i].Ratio + ", of " + c.Ways[0].Name })
	for way, r := range results {
		line(c.Ways[way].Name, func(i int) string {
			if c.Figures[i].Ratio == "" {
				return number(spreadOf(r[i]).median)
			}
			return spreadOf(r[i]).String()
		}, func(i int) string {
			if way == 0 {
				return "1"
			}
			return spreadOf(ratios(r[i], results[0][i])).String()
		})
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
