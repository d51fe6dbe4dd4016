package emulator

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"gcsup/internal/clientcheck"
)

// Check are the flags of a check of a client. The zero value is not ready: call Add.
type Check struct {
	limit   time.Duration
	jobs    int
	size    size
	tls     bool
	json    bool
	list    bool
	scripts string
	page    string
}

// Add adds the flags to fs, with their defaults.
func (c *Check) Add(fs *flag.FlagSet) {
	c.size = clientcheck.DefaultSize
	fs.StringVar(&c.scripts, "script", "", "run only the scripts `NAME[,NAME...]`")
	fs.Var(&c.size, "size", "`SIZE` of most sources, a multiple of 256 KiB; three chunks of the client, or more")
	fs.DurationVar(&c.limit, "limit", clientcheck.DefaultLimit, "end the client after `DURATION`; not to end is a failure")
	fs.IntVar(&c.jobs, "jobs", 1, "run `N` scripts at a time")
	fs.BoolVar(&c.tls, "tls", false, "serve https; {ca} is the file of the certificate authority")
	fs.BoolVar(&c.json, "json", false, "print one JSON object per script")
	fs.StringVar(&c.page, "page", "", "write an HTML page with the conversations of failed scripts to `FILE`")
	fs.BoolVar(&c.list, "list", false, "print the scripts with the facts that they assume, and run none")
}

// CheckNames returns the names of the flags of a check in the order in which a help shows them.
func CheckNames() []string { return strings.Fields(`script size limit jobs tls json page list`) }

// Run checks the client that the command line args is. It reports whether the client failed a script.
func (c *Check) Run(ctx context.Context, args []string, stdout io.Writer) (failed bool, err error) {
	scripts, err := c.chosen()
	if err != nil {
		return false, err
	}
	switch {
	case c.list && len(args) > 0:
		return false, usagef("--list takes no command")
	case c.list:
		return false, c.printList(stdout, scripts)
	case len(args) == 0:
		return false, usagef("give the command that uploads {file} after --")
	case c.limit <= 0:
		return false, usagef("--limit %v: want a duration of more than 0", c.limit)
	case c.jobs < 1:
		return false, usagef("--jobs %d: want a number of more than 0", c.jobs)
	case c.size <= 0 || c.size%clientcheck.Granularity != 0:
		return false, usagef("--size %s: want a multiple of 256 KiB", c.size.String())
	}
	client, err := clientcheck.Command(args)
	if err != nil {
		return false, &FileError{err}
	}
	totals := clientcheck.Totals{}
	var results []clientcheck.Result
	o := clientcheck.Options{Size: int64(c.size), Limit: c.limit, Jobs: c.jobs, TLS: c.tls}
	err = clientcheck.All(ctx, client, scripts, o, func(r clientcheck.Result) error {
		totals[r.Verdict.Outcome()]++
		results = append(results, r)
		if c.json {
			return c.print(json.NewEncoder(stdout).Encode(r.Line()))
		}
		_, err := io.WriteString(stdout, r.Text())
		return c.print(err)
	})
	if err != nil {
		return false, err
	}
	if c.json {
		err = json.NewEncoder(stdout).Encode(struct {
			Type   string             `json:"type"`
			Totals clientcheck.Totals `json:"totals"`
		}{"totals", totals})
	} else {
		_, err = fmt.Fprintln(stdout, totals)
	}
	if err := c.print(err); err != nil {
		return false, err
	}
	if c.page != "" {
		if err := os.WriteFile(c.page, clientcheck.Page(strings.Join(args, " "), results), 0o666); err != nil {
			return false, fmt.Errorf("--page: %w", err)
		}
	}
	return totals[clientcheck.Faulty] > 0, nil
}

// print returns the error of a write to standard output.
func (c *Check) print(err error) error {
	if err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}

// chosen returns the scripts of --script.
func (c *Check) chosen() ([]clientcheck.Script, error) {
	all := clientcheck.Scripts()
	if c.scripts == "" {
		return all, nil
	}
	var list []clientcheck.Script
	for name := range strings.SplitSeq(c.scripts, ",") {
		i := slices.IndexFunc(all, func(s clientcheck.Script) bool { return s.Name == name })
		if i < 0 {
			return nil, usagef("--script: there is no script %q; see --list", name)
		}
		list = append(list, all[i])
	}
	return list, nil
}

func (c *Check) printList(stdout io.Writer, scripts []clientcheck.Script) error {
	for _, s := range scripts {
		var err error
		if c.json {
			err = json.NewEncoder(stdout).Encode(map[string]string{
				"type": "script", "script": s.Name, "does": s.Does, "fact": s.Fact, "source": s.Source, "disputed": s.Disputed,
			})
		} else {
			text := fmt.Sprintf("%s\n    %s\n    fact: %s\n    source: %s\n", s.Name, s.Does, s.Fact, s.Source)
			if s.Disputed != "" {
				text += fmt.Sprintf("    does not count: %s\n", s.Disputed)
			}
			_, err = io.WriteString(stdout, text)
		}
		if err != nil {
			return c.print(err)
		}
	}
	return nil
}
