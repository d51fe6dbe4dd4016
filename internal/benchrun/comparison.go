package benchrun

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Comparison compares ways to do the same work. The first one is the baseline.
type Comparison struct {
	Name    string // for -only
	Title   string // what is compared, after the name
	Ways    []Way
	Figures []Figure // the columns of the table

	// Prepare, if set, is called after a server starts.
	Prepare func(*Suite, *Process) error

	// Do makes a run. If it is not set, a run is [Suite.Measure].
	Do func(*Suite, *Run) error

	// Once makes one run of each way, with a server of its own. It is for runs that take
	// minutes, and for those that look at what a server received.
	Once bool
}

// Way is one way to do the work.
type Way struct {
	Name     string
	Server   Server
	Optional bool // leave it out if its program is not installed

	// Command returns the process that does the work once. Its Env is added to that of a
	// client of the server. Number differs between the runs of a comparison.
	Command func(endpoint string, number int) *exec.Cmd
}

// Figure is a column of the table: the median of a number that each run has.
type Figure struct {
	Title string
	Of    func(*Run) (float64, error)

	// Ratio, if set, is the heading of another column, for the ratio to the baseline. Both
	// columns then have the least and the greatest value, too.
	Ratio string
}

// Usual returns the figures of a comparison whose runs do an amount of work in units.
func Usual(work float64, unit string) []Figure {
	return []Figure{
		{Title: "wall s", Ratio: "wall", Of: func(r *Run) (float64, error) { return r.Wall, nil }},
		{Title: "CPU s", Ratio: "CPU", Of: func(r *Run) (float64, error) { return r.CPU, nil }},
		{Title: unit + "/s", Of: func(r *Run) (float64, error) { return work / r.Wall, nil }},
		{Title: "CPU ms/" + unit, Of: func(r *Run) (float64, error) { return r.CPU * 1000 / work, nil }},
		{Title: "resident MiB", Of: func(r *Run) (float64, error) { return r.Resident, nil }},
	}
}

// Run is a run of a way.
type Run struct {
	Way    Way
	Server *Process
	Number int

	// What [Suite.Measure] has measured.
	Wall, CPU float64 // seconds
	Resident  float64 // greatest resident memory of the process, in MiB
	Output    []byte
}

// Measure runs the command of a way once.
func (s *Suite) Measure(r *Run) error {
	c, err := s.StartClient(r)
	if err != nil {
		return err
	}
	<-c.Ended
	state := c.cmd.ProcessState
	r.Wall, r.CPU, r.Resident = c.wall.Seconds(), (state.UserTime() + state.SystemTime()).Seconds(), residentMiB(state)
	r.Output = c.Output()
	return c.Failure()
}

// pause is the time before each run in which the machine should be idle.
const pause = 200 * time.Millisecond

// compare runs a comparison, and prints a table. It does nothing if the flags select no
// way except the baseline.
func (s *Suite) compare(c Comparison) error {
	if c.Ways = c.selected(); len(c.Ways) < 2 {
		return nil
	}
	s.compared = true
	rounds, warmups, title := *runs+1, 1, fmt.Sprintf("median (least-greatest) of %d runs", *runs)
	if c.Once {
		rounds, warmups, title = 1, 0, "one run"
	}
	servers := map[Server]*Process{}
	defer func() {
		for _, p := range servers {
			p.stop()
		}
	}()
	results := make([]result, len(c.Ways))
	var idle idleness
	for number := range rounds {
		for i, w := range c.Ways {
			if servers[w.Server] == nil {
				p, err := s.start(w.Server)
				if err != nil {
					return err
				}
				servers[w.Server] = p
				if c.Prepare != nil {
					if err := c.Prepare(s, p); err != nil {
						return fmt.Errorf("prepare: %w", err)
					}
				}
			}
			idle.wait(pause)
			values, err := s.measure(c, &Run{Way: w, Server: servers[w.Server], Number: number})
			if err != nil {
				return fmt.Errorf("%s: %w", w.Name, err)
			}
			if number >= warmups { // a first run warms up the server and the page cache
				results[i].add(values)
			}
			if c.Once {
				servers[w.Server].stop()
				delete(servers, w.Server)
			}
		}
	}
	fmt.Printf("\n%s: %s; %s\n%s%s\n", c.Name, c.Title, title, c.table(results), idle.String())
	return nil
}

// selected returns the baseline, and the ways that -ways names and that are installed. It
// returns none if -only does not name the comparison.
func (c Comparison) selected() []Way {
	if !named(*only, c.Name) {
		return nil
	}
	var selected []Way
	for i, w := range c.Ways {
		if i > 0 && !named(*onlyWays, w.Name) {
			continue
		}
		if err := w.Command("", 0).Err; w.Optional && err != nil {
			fmt.Printf("%s is left out: %v\n", w.Name, err)
			continue
		}
		selected = append(selected, w)
	}
	return selected
}

// named reports whether a list is empty or has a name.
func named(list, name string) bool {
	return list == "" || slices.Contains(strings.Split(list, ","), name)
}

// measure makes a run, and returns its figures.
func (s *Suite) measure(c Comparison, r *Run) ([]float64, error) {
	do := c.Do
	if do == nil {
		do = (*Suite).Measure
	}
	if err := do(s, r); err != nil {
		return nil, err
	}
	values := make([]float64, len(c.Figures))
	for i, f := range c.Figures {
		var err error
		if values[i], err = f.Of(r); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Title, err)
		}
	}
	return values, nil
}
