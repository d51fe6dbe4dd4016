package cmdline

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
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

// Rules decide which flags and which variables count.
type Rules struct {
	// None are flags without a variable.
	None []string

	// Exclusive are flags that exclude each other. Two of them on the command line, or in the
	// environment, are an error. One of them on the command line has priority over the
	// variables of the others.
	Exclusive [][]string

	// Needs has the flags that are an error without another one. Their variables
	// count only if that one is set.
	Needs map[string]string
}

// Set sets the flags of cmd that are not on the command line to the values of their
// environment variables, and refuses flags that exclude each other. An empty variable
// counts as not set. Errors do not contain the values of flags that can be secret.
func (r *Rules) Set(cmd *cobra.Command) error {
	var err error
	given := map[string]bool{}
	cmd.Flags().Visit(func(f *pflag.Flag) { given[f.Name] = true })
	overridden := func(name string) bool {
		return given[name] || slices.ContainsFunc(r.Exclusive, func(group []string) bool {
			return slices.Contains(group, name) && slices.ContainsFunc(group, func(other string) bool { return given[other] })
		})
	}
	useless := func(name string) bool {
		other, ok := r.Needs[name]
		return ok && !given[other] && (os.Getenv(Variable(other)) == "" || overridden(other))
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		value := os.Getenv(Variable(f.Name))
		if err != nil || value == "" || f.Hidden || slices.Contains(r.None, f.Name) || overridden(f.Name) || useless(f.Name) {
			return
		}
		if f.NoOptDefVal != "" && f.Value.Type() != "bool" {
			switch on, boolErr := strconv.ParseBool(value); {
			case boolErr != nil:
			case !on:
				return // false is not the name of a directory
			default:
				value = f.NoOptDefVal // as the flag without a value
			}
		}
		if setErr := cmd.Flags().Set(f.Name, value); setErr != nil {
			err = exit.Usagef("%s %q: %s; see %s", Variable(f.Name), value, Wanted(f, setErr), HelpOf(cmd))
		}
		f.Annotations = map[string][]string{fromEnv: nil}
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

// inEffect reports whether a flag is set. A nil flag, which the command does not have, an empty value and
// false are like no flag. A flag that needs no value may have an empty one.
func inEffect(f *pflag.Flag) bool {
	if f == nil || !f.Changed {
		return false
	}
	value := f.Value.String()
	return value != "[]" && value != "false" && (value != "" || f.NoOptDefVal != "")
}

// fromEnv annotates a flag that got its value from the environment.
const fromEnv = "gcsup_from_environment"

// FromEnvironment reports whether a flag got its value from the environment.
func FromEnvironment(f *pflag.Flag) bool {
	_, ok := f.Annotations[fromEnv]
	return ok
}

// Explain adds to a usage error which of the flags in it came from the
// environment.
func Explain(cmd *cobra.Command, err error) error {
	if cmd == nil || !errors.Is(err, exit.ErrUsage) {
		return err
	}
	text := err.Error()
	var variables []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if FromEnvironment(f) && mentions(text, "--"+f.Name) {
			variables = append(variables, fmt.Sprintf("--%s is from %s", f.Name, Variable(f.Name)))
		}
	})
	if len(variables) == 0 {
		return err
	}
	return exit.WithKind(fmt.Errorf("%w (%s)", err, strings.Join(variables, ", ")), exit.ErrUsage)
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
