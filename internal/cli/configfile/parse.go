package configfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
)

// Command is a command whose flags can have values in a file.
type Command struct {
	Name  string         // without that of the program, such as "outbox run"
	Flags *pflag.FlagSet // Parse sets flags, to check their values: they must not be used otherwise
}

// Refused has the flags that can have no value in a file, each with the reason.
type Refused map[string]string

// parser checks a file. Errors do not contain a value that may be secret: values are printed only
// for flags that the file may have.
type parser struct {
	path     string
	commands []Command
	refused  Refused
}

// Parse returns the values in a file. A key that no command has, a value that a flag does not
// accept, and a flag that is refused are errors, with the line.
func Parse(path string, data []byte, commands []Command, refused Refused) (*File, error) {
	p := &parser{path, commands, refused}
	f := &File{Path: path, all: cmdline.Layer{}, sections: map[string]cmdline.Layer{}}
	root, err := p.document(data)
	if err != nil || root == nil {
		return f, err
	}
	err = p.pairs(root, func(key, value *yaml.Node) error {
		if value.Kind != yaml.MappingNode {
			return p.add(f.all, p.commands, key, value)
		}
		command, err := p.command(key)
		if err != nil {
			return err
		}
		section := cmdline.Layer{}
		f.sections[command.Name] = section
		return p.pairs(value, func(key, value *yaml.Node) error { return p.add(section, []Command{command}, key, value) })
	})
	return f, err
}

// errorf returns a usage error at a line.
func (p *parser) errorf(n *yaml.Node, format string, args ...any) error {
	return exit.Usagef("%s: %w", cmdline.AtLine(p.path, n.Line), fmt.Errorf(format, args...))
}

// document returns the mapping in data, or nil if there is none.
func (p *parser) document(data []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, p.syntax(data, err)
	}
	if err := d.Decode(&more); err == nil {
		return nil, p.errorf(&more, "a second document: want one")
	} else if !errors.Is(err, io.EOF) {
		return nil, p.syntax(data, err)
	}
	root := doc.Content[0]
	switch {
	case root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null":
		return nil, nil
	case root.Kind != yaml.MappingNode:
		return nil, p.errorf(root, "want lines such as jobs: 8")
	}
	return root, nil
}

// parserLine matches the line in an error of the YAML parser. It is missing in line 1, and that of some
// errors is the line above.
var parserLine = regexp.MustCompile(`^yaml: (line \d+: )?`)

// syntax returns the error of the YAML parser for data, with the line.
func (p *parser) syntax(data []byte, err error) error {
	where := p.path
	if line := badLine(data); line > 0 {
		where = cmdline.AtLine(p.path, line)
	}
	return exit.Usagef("%s: %s", where, parserLine.ReplaceAllString(err.Error(), ""))
}

// badLine returns the line in which data stops to be the beginning of a valid file, or 0 if that would
// take long to find. Of a bracket or a quote that is not closed, it is the line that opens it.
func badLine(data []byte) int {
	const most = 1000 // lines
	lines := bytes.SplitAfter(data, []byte("\n"))
	if len(lines) > most {
		return 0
	}
	line := len(lines)
	for line > 1 && !valid(bytes.Join(lines[:line-1], nil)) {
		line--
	}
	return line
}

// valid reports whether data is YAML.
func valid(data []byte) bool {
	d := yaml.NewDecoder(bytes.NewReader(data))
	for {
		switch err := d.Decode(new(yaml.Node)); {
		case errors.Is(err, io.EOF):
			return true
		case err != nil:
			return false
		}
	}
}

// pairs calls do for each key of a mapping.
func (p *parser) pairs(mapping *yaml.Node, do func(key, value *yaml.Node) error) error {
	lines := map[string]int{}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			return p.errorf(key, "want the name of a flag or of a command")
		}
		if line := lines[key.Value]; line > 0 {
			return p.errorf(key, "%s is also in line %d: remove one of them", key.Value, line)
		}
		lines[key.Value] = key.Line
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if err := do(key, value); err != nil {
			return err
		}
	}
	return nil
}

// command returns the command of a section.
func (p *parser) command(key *yaml.Node) (Command, error) {
	var names, below []string
	for _, c := range p.commands {
		if c.Name == key.Value {
			return c, nil
		}
		names = append(names, c.Name)
		if strings.HasPrefix(c.Name, key.Value+" ") {
			below = append(below, c.Name)
		}
	}
	near := cmdline.Nearest(key.Value, names)
	switch {
	case len(below) > 0:
		return Command{}, p.errorf(key, "%s has several commands: want one of %s", key.Value, strings.Join(below, ", "))
	case p.known(key.Value):
		return Command{}, p.errorf(key, "%s is a flag: want its value, and not a section", key.Value)
	case near != "":
		return Command{}, p.errorf(key, "unknown command %q, did you mean %q?", key.Value, near)
	}
	return Command{}, p.errorf(key, "unknown command %q: want one of %s", key.Value, strings.Join(names, ", "))
}

// flag returns a flag of a command, or nil.
func (p *parser) flag(c Command, name string) *pflag.Flag {
	f := c.Flags.Lookup(name)
	if f == nil || f.Hidden {
		return nil
	}
	return f
}

// known reports whether any command has the flag.
func (p *parser) known(name string) bool {
	return slices.ContainsFunc(p.commands, func(c Command) bool { return p.flag(c, name) != nil })
}

// add adds the value of a flag to a layer, if all commands that have the flag accept it.
func (p *parser) add(layer cmdline.Layer, commands []Command, key, value *yaml.Node) error {
	if reason, ok := p.refused[key.Value]; ok {
		return p.errorf(key, "%s: %s", key.Value, reason)
	}
	found := false
	for _, c := range commands {
		f := p.flag(c, key.Value)
		if f == nil {
			continue
		}
		found = true
		texts, err := p.texts(f, key, value)
		if err != nil {
			return err
		}
		d := cmdline.InFile(p.path, key.Line, texts...)
		if err := d.Apply(c.Flags, f); err != nil {
			if len(commands) > 1 {
				err = fmt.Errorf("%w (for %s)", err, c.Name)
			}
			return exit.WithKind(err, exit.ErrUsage)
		}
		layer[f.Name] = d
	}
	if !found {
		return p.unknown(commands, key)
	}
	return nil
}

// unknown returns the error of a key that is no flag of the commands.
func (p *parser) unknown(commands []Command, key *yaml.Node) error {
	var names, others []string
	for _, c := range commands {
		c.Flags.VisitAll(func(f *pflag.Flag) {
			if _, refused := p.refused[f.Name]; !refused && !f.Hidden {
				names = append(names, f.Name)
			}
		})
	}
	slices.Sort(names) // so that the nearest one does not depend on the commands
	for _, c := range p.commands {
		if p.flag(c, key.Value) != nil {
			others = append(others, c.Name)
		}
	}
	isCommand := slices.ContainsFunc(p.commands, func(c Command) bool { return c.Name == key.Value })
	near := cmdline.Nearest(strings.TrimLeft(key.Value, "-"), names)
	switch {
	case len(commands) > 1 && isCommand:
		return p.errorf(key, "%s is a command: want a section with its flags", key.Value)
	case len(others) > 0:
		return p.errorf(key, "%s has no flag %q; these have it: %s", commands[0].Name, key.Value, strings.Join(others, ", "))
	case near != "":
		return p.errorf(key, "unknown flag %q, did you mean %q?", key.Value, near)
	}
	return p.errorf(key, "unknown flag %q", key.Value)
}

// texts returns the value of a flag as on the command line.
func (p *parser) texts(f *pflag.Flag, key, value *yaml.Node) ([]string, error) {
	if value.Kind != yaml.SequenceNode {
		text, err := p.text(f, key, value)
		return []string{text}, err
	}
	if _, repeats := f.Value.(pflag.SliceValue); !repeats {
		return nil, p.errorf(value, "%s: want one value, and not a list", key.Value)
	}
	texts := []string{}
	for _, item := range value.Content {
		text, err := p.text(f, key, item)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// decimal matches the numbers that mean the same in YAML 1.1, in YAML 1.2 and on a command line. 010
// is 8 or 10.
var decimal = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)$`)

// takesText reports whether any text is a value of a flag.
func takesText(f *pflag.Flag) bool { return strings.HasPrefix(f.Value.Type(), "string") }

// boolWords are booleans in YAML 1.1 only.
var boolWords = map[string]bool{"yes": true, "no": true, "on": true, "off": true, "y": true, "n": true}

// noHome explains what to write instead of ~ for a flag whose value is a path. It returns "" for other
// flags.
func noHome(f *pflag.Flag) string {
	if name, _ := pflag.UnquoteUsage(f); name != "DIR" && name != "FILE" {
		return ""
	}
	return "; write the path of the home directory"
}

// text returns one value of a flag.
func (p *parser) text(f *pflag.Flag, key, value *yaml.Node) (string, error) {
	boolean, takesBoolean := value.ShortTag() == "!!bool", f.Value.Type() == "bool"
	switch {
	case value.Kind != yaml.ScalarNode:
		return "", p.errorf(value, "%s: want one value", key.Value)
	case value.ShortTag() == "!!null" && value.Value == "~":
		return "", p.errorf(value, "%s: ~ means no value in YAML: %s%s", key.Value, cmdline.Wanted(f, nil), noHome(f))
	case value.ShortTag() == "!!null":
		return "", p.errorf(key, "%s has no value: %s", key.Value, cmdline.Wanted(f, nil))
	case strings.HasPrefix(value.Value, "~/") && noHome(f) != "":
		return "", p.errorf(value, "%s %q: ~ is not expanded%s", key.Value, value.Value, noHome(f))
	case takesBoolean && boolWords[strings.ToLower(value.Value)]:
		return "", p.errorf(value, "%s %q: want true or false; %[2]s is a text in YAML 1.2", key.Value, value.Value)
	case takesBoolean && !boolean:
		return "", p.errorf(value, "%s %q: want true or false", key.Value, value.Value)
	case boolean && !takesBoolean && f.NoOptDefVal == "":
		return "", p.errorf(value, "%s: true and false are no values of it; put a text in quotes", key.Value)
	case value.ShortTag() == "!!int" && !takesText(f) && !decimal.MatchString(value.Value):
		return "", p.errorf(value, "%s %q: want a decimal number without leading zeros", key.Value, value.Value)
	}
	return value.Value, nil
}
