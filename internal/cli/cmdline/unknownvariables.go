package cmdline

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// prefix begins the names of the variables of both commands.
const prefix = "GCSUP_"

// testPrefix begins the names of variables for tests.
const testPrefix = prefix + "TEST_"

// FlagsOfFleet are the flags of gcsup-fleet, apart from those that both commands take from packages. A
// machine may have the variables of both commands. A test of gcsup-fleet checks the list.
var FlagsOfFleet = []string{
	"accept-changed", "ack-wait", "billing-project", "bucket", "emulator", "endpoint", "failed", "fleet", "fleet-dir",
	"jobs", "json", "keep", "limit-rate", "listen", "log", "manifest", "max-failures", "missing-for", "nats", "nats-ca", "nats-cert",
	"nats-creds", "nats-key", "nats-replicas", "off", "recursive", "root", "sign-key", "state", "state-key-file",
	"state-unsealed", "trust-times", "until-empty", "verify-key", "wait", "workers",
}

// UnknownVariables returns the names of the variables in environ, in the form of os.Environ, that are not empty,
// begin with GCSUP_ and that neither a command below root nor gcsup-fleet uses. others are
// names that count as known. The values are not in the result, because they can be secret.
func UnknownVariables(root *cobra.Command, environ, others []string) []string {
	known := map[string]bool{}
	for _, flag := range FlagsOfFleet {
		known[Variable(flag)] = true
	}
	for _, name := range others {
		known[name] = true
	}
	var add func(*cobra.Command)
	add = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known[Variable(f.Name)] = true })
		for _, c := range cmd.Commands() {
			add(c)
		}
	}
	add(root)
	var unknown []string
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if value != "" && strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, testPrefix) && !known[name] {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}
