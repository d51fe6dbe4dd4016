package main

import (
	"bytes"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gcsup/backoff"
	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/retrysim"
)

func newSimulate(std stdio) *cobra.Command {
	var scenario, svg string
	var clients, capacity int
	var outage time.Duration
	var policies []string
	var seed uint64
	var asJSON bool
	help := `simulate runs many clients against a server that is down for a while, in virtual
time, once per retry policy, and compares the results.

Policies: ` + strings.Join(backoff.Names(), ", ") + "."
	for _, s := range retrysim.Scenarios() {
		help += "\n\nScenario " + s.Name + ": " + s.About + "."
	}
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Compare the load of retry policies on a server after an outage",
		Long:  help,
		Example: `  gcsup simulate
  gcsup simulate --scenario overload --policy none,full --svg load.svg`,
		Args: cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := retrysim.Lookup(scenario)
			if err != nil {
				return exit.Usagef("%w", err)
			}
			flags := cmd.Flags()
			if flags.Changed("clients") {
				if !flags.Changed("capacity") && clients > s.Clients {
					// Scale the server with the clients. The scenario's server would
					// need hours for all of them.
					s.Capacity = max(int(int64(s.Capacity)*int64(clients)/int64(s.Clients)), 1)
				}
				s.Clients = clients
			}
			if flags.Changed("capacity") {
				s.Capacity = capacity
			}
			if flags.Changed("outage") {
				s.Outage = outage
			}
			ctx := cmd.Context()
			results, err := retrysim.Run(ctx, s, policies, seed)
			switch {
			case ctx.Err() != nil:
				return err
			case err != nil:
				return exit.Usagef("%w", err)
			}
			if svg != "" {
				var chart bytes.Buffer
				if err := retrysim.WriteSVG(&chart, s, results); err != nil {
					return err
				}
				if err := os.WriteFile(svg, chart.Bytes(), 0o666); err != nil {
					return err
				}
			}
			if asJSON {
				return retrysim.WriteJSON(std.out, results)
			}
			return retrysim.WriteTable(std.out, s, results)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&scenario, "scenario", retrysim.Scenarios()[0].Name, "run the scenario `NAME`")
	flags.IntVar(&clients, "clients", 0, "`N` clients, up to a million (default: the scenario's)")
	flags.IntVar(&capacity, "capacity", 0, "the server serves `N` requests per second (default: the scenario's, scaled up with --clients)")
	flags.DurationVar(&outage, "outage", 0, "the server is down for `DURATION` (default: the scenario's)")
	flags.StringSliceVar(&policies, "policy", []string{"none", "exponential", "cloudstorage", "full", "decorrelated"}, "compare these policies, `NAME[,NAME...]`")
	flags.Uint64Var(&seed, "seed", 1, "`N` is the seed of the random numbers; the same seed gives the same output")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object per policy")
	flags.StringVar(&svg, "svg", "", "draw load over time into `FILE`")
	cmdline.Common(flags, "scenario", "clients", "outage", "policy", "json", "svg")
	return cmd
}
