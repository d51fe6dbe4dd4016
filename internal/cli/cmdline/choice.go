package cmdline

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// choose returns the values that count for flags that are not on the command line. The environment is
// above the layers.
func (r *Rules) choose(cmd *cobra.Command, layers []Layer) Layer {
	useless := map[string]bool{} // flags without one that they need; they exclude no other
	for {
		c := r.commandLine(cmd)
		c.add(r.environment(c.flags), useless)
		c.addVariables()
		for _, layer := range layers {
			c.add(layer, useless)
		}
		before := len(useless)
		for name := range c.values {
			if needs := r.Needs[name]; needs != nil && !slices.ContainsFunc(needs, c.has) {
				useless[name] = true
			}
		}
		if len(useless) == before {
			return c.values
		}
	}
}

// choice has the values that count, of the layers so far.
type choice struct {
	rules    *Rules
	flags    *pflag.FlagSet
	values   Layer
	named    map[string]bool // flags with a value, which may be false
	inEffect map[string]bool // names of the rules
}

// commandLine returns the choice of no layer.
func (r *Rules) commandLine(cmd *cobra.Command) *choice {
	c := &choice{r, cmd.LocalFlags(), Layer{}, map[string]bool{}, map[string]bool{}}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		c.named[f.Name] = true
		if !inEffect(f) {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		c.use(f.Name, values)
	})
	if r.Arguments != nil {
		for _, name := range r.Arguments(cmd) {
			c.inEffect[name] = true
		}
	}
	return c
}

// use records that a flag is in effect.
func (c *choice) use(name string, values []string) {
	for _, name := range namesOf(name, values) {
		c.inEffect[name] = true
	}
}

// namesOf returns the names of a flag with those values in the rules, first its own.
func namesOf(flag string, values []string) []string {
	names := []string{flag}
	for _, value := range values {
		names = append(names, flag+"="+value)
	}
	return names
}

// add adds the values of a layer below that count. Two flags of one layer do not replace each other.
func (c *choice) add(layer Layer, useless map[string]bool) {
	found := Layer{}
	for name, value := range layer {
		f := c.flags.Lookup(name)
		if f == nil || c.named[name] || useless[name] {
			continue
		}
		if !c.contradicts(namesOf(name, value.texts(f))) {
			found[name] = value
		}
	}
	for name, value := range found {
		c.values[name], c.named[name] = value, true
		if f := c.flags.Lookup(name); value.on(f) {
			c.use(name, value.texts(f))
		}
	}
}

// contradicts reports whether what is in effect above excludes a flag with those names.
func (c *choice) contradicts(names []string) bool {
	above := func(other string) bool { return c.inEffect[other] }
	yields := func(other string) bool { return above(other) && !slices.Contains(c.rules.Firm[names[0]], other) }
	for _, group := range c.rules.Exclusive {
		if slices.Contains(group, names[0]) && slices.ContainsFunc(group, yields) {
			return true
		}
	}
	return slices.ContainsFunc(names, func(name string) bool { return slices.ContainsFunc(c.rules.Yields[name], above) })
}

// has reports whether something is in effect. The number 0 is like no flag.
func (c *choice) has(name string) bool {
	f := c.flags.Lookup(name)
	text := f != nil && f.Value.Type() == "string"
	return c.inEffect[name] && (text || !c.inEffect[name+"=0"])
}

// addVariables adds the variables to which flags yield.
func (c *choice) addVariables() {
	for _, others := range c.rules.Yields {
		for _, name := range others {
			if variable, ok := strings.CutPrefix(name, "$"); ok && os.Getenv(variable) != "" {
				c.inEffect[name] = true
			}
		}
	}
}
