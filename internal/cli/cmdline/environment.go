package cmdline

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gcsup/internal/cli/exit"
)

// Variable returns the environment variable of a flag: GCSUP_LIMIT_RATE for
// --limit-rate.
func Variable(flag string) string {
	return "GCSUP_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Rules decide which flags count, and which of their values from the environment and other layers.
//
// The names in Yields and Needs are as a user writes them: delete is a flag, report=- a flag with
// that value, $HOME a variable of the environment, and - an argument.
type Rules struct {
	// None are flags without a variable.
	None []string

	// Exclusive are groups of flags that exclude each other. Two of them on the command line, or in one
	// layer, are an error. One of them on the command line or in a layer has priority over the
	// others in the layers below.
	Exclusive [][]string

	// Firm has flags of Exclusive whose values in layers are an error beside these others, because
	// without them more would be uploaded or replaced.
	Firm map[string][]string

	// Yields has flags whose values in layers do not count if one of others is in effect above. The
	// command refuses both on the command line.
	Yields map[string][]string

	// Needs has the flags that are an error, or have no effect, without one of others. Their values
	// in layers count only with it.
	Needs map[string][]string

	// Arguments returns the names of the arguments of a command. It can be nil.
	Arguments func(cmd *cobra.Command) []string
}

// Set sets the flags of cmd that are not on the command line to the values of their
// environment variables, or else to those of the layers, of which the first has the highest priority.
// It refuses flags that exclude each other. An empty variable counts as not set. Errors do not
// contain the values of flags that can be secret.
func (r *Rules) Set(cmd *cobra.Command, layers ...Layer) error {
	chosen := r.choose(cmd, layers)
	var err error
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if value, ok := chosen[f.Name]; ok && err == nil {
			err = value.set(cmd, f)
		}
	})
	if err != nil {
		return err
	}
	return r.checkExclusive(cmd.Flags())
}

// checkExclusive refuses flags that exclude each other.
func (r *Rules) checkExclusive(flags *pflag.FlagSet) error {
	for _, group := range r.Exclusive {
		first := ""
		for _, name := range group {
			switch {
			case !inEffect(flags.Lookup(name)):
			case first != "":
				return exit.Usagef("--%s and --%s exclude each other", first, name)
			default:
				first = name
			}
		}
	}
	return nil
}

// inEffect reports whether a flag is set. A nil flag, which the command does not have, an empty value, false
// and off are like no flag. A flag that needs no value may have an empty one.
func inEffect(f *pflag.Flag) bool {
	if f == nil || !f.Changed {
		return false
	}
	value := f.Value.String()
	return value != "[]" && value != "false" && !isOff(f, value) && (value != "" || f.NoOptDefVal != "")
}

// Explain adds to a usage error which of the flags in it came from the
// environment or from a file.
func Explain(cmd *cobra.Command, err error) error {
	if cmd == nil || !errors.Is(err, exit.ErrUsage) {
		return err
	}
	text := err.Error()
	var origins []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if inherited(f) && mentions(text, "--"+f.Name) {
			origins = append(origins, fmt.Sprintf("--%s is from %s", f.Name, origin(f)))
		}
	})
	if len(origins) == 0 {
		return err
	}
	return exit.WithKind(fmt.Errorf("%w (%s)", err, strings.Join(origins, ", ")), exit.ErrUsage)
}

// mentions reports whether text has flag as a whole word.
func mentions(text, flag string) bool {
	for {
		_, rest, found := strings.Cut(text, flag)
		if !found {
			return false
		}
		if rest == "" || rest[0] != '-' && (rest[0] < 'a' || rest[0] > 'z') {
			return true
		}
		text = rest
	}
}
