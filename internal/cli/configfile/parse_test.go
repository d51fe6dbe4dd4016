package configfile_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/configfile"
	"gcsup/internal/cli/exit"
)

// commands returns new commands, because Parse sets their flags.
func commands() []configfile.Command {
	cp, run, put := pflag.NewFlagSet("cp", 0), pflag.NewFlagSet("run", 0), pflag.NewFlagSet("put", 0)
	for _, fs := range []*pflag.FlagSet{cp, run} {
		fs.Int("jobs", 4, "")
		fs.Bool("quiet", false, "")
		fs.StringArray("exclude", nil, "")
		fs.String("endpoint", "", "")
		fs.String("secret", "", "")
	}
	cp.Duration("retry-for", time.Minute, "")
	cp.String("state-dir", "", "a `DIR`")
	cp.String("old", "", "")
	_ = cp.MarkHidden("old")
	skip := cp.VarPF(new(cmdline.Size), "skip", "", "")
	skip.NoOptDefVal = "1"
	run.String("then", "", "")
	put.Bool("emulator", false, "")
	return []configfile.Command{{Name: "cp", Flags: cp}, {Name: "outbox run", Flags: run}, {Name: "outbox put", Flags: put}, {Name: "emulator", Flags: put}}
}

var refused = configfile.Refused{"secret": "its value may be a secret"}

// layers formats the values for a command.
func layers(f *configfile.File, command string) string {
	var texts []string
	for _, layer := range f.Layers(command) {
		for _, name := range slices.Sorted(maps.Keys(layer)) {
			texts = append(texts, name+"="+strings.Join(layer[name].Values, "|")+" "+strings.TrimPrefix(layer[name].Where, "c.yaml line "))
		}
		texts = append(texts, ";")
	}
	return strings.Join(texts, " ")
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ text, command, want string }{
		{"", "cp", ""},
		{"# nothing\n---\n", "cp", ""},
		{"jobs: 8\n", "cp", "jobs=8 1 ;"},
		{"jobs: 8\ncp:\n  jobs: 2\n  quiet: true\n", "cp", "jobs=2 3 quiet=true 4 ; jobs=8 1 ;"},
		{"jobs: 8\ncp:\n  jobs: 2\n", "outbox run", "jobs=8 1 ;"},
		{"outbox run:\n  then: keep\n", "outbox run", "then=keep 2 ;"},
		{"outbox run:\n  then: keep\n", "cp", ""},
		{"exclude: ['*.tmp', .git/]\n", "cp", "exclude=*.tmp|.git/ 1 ;"},
		{"exclude: one\n", "cp", "exclude=one 1 ;"},
		{"exclude: []\n", "cp", "exclude= 1 ;"},
		{"retry-for: 12h\nskip: true\n", "cp", "retry-for=12h 1 skip=true 2 ;"},
		{"skip: 8MiB\nquiet: false\n", "cp", "quiet=false 2 skip=8MiB 1 ;"},
		{"endpoint: 2026-01-01\n", "cp", "endpoint=2026-01-01 1 ;"}, // a date in YAML
		{"exclude: [~/old, '~']\n", "cp", "exclude=~/old|~ 1 ;"},    // patterns
		{"endpoint: off\n", "cp", "endpoint=off 1 ;"},
		{"endpoint: 1.10\n", "cp", "endpoint=1.10 1 ;"},
		{"endpoint: 010\nexclude: [007, 0x10]\n", "cp", "endpoint=010 1 exclude=007|0x10 2 ;"}, // texts
		{"endpoint: 'true'\n", "cp", "endpoint=true 1 ;"},
		{"endpoint: \"\"\n", "cp", "endpoint= 1 ;"},
		{"emulator: true\n", "emulator", "emulator=true 1 ;"}, // a flag
		{"emulator:\n  emulator: true\n", "emulator", "emulator=true 2 ;"},
		{"cp: &both\n  jobs: 1\noutbox run: *both\n", "outbox run", "jobs=1 2 ;"},
		{"\ufeffjobs: 8\r\n", "cp", "jobs=8 1 ;"},
	} {
		f, err := configfile.Parse("c.yaml", []byte(c.text), commands(), refused)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if got := layers(f, c.command); got != c.want {
			t.Errorf("%q for %s: %s, want %s", c.text, c.command, got, c.want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"jobs: 8\njob: 8\n":                `c.yaml line 2: unknown flag "job", did you mean "jobs"?`,
		"--jobs: 8\n":                      `c.yaml line 1: unknown flag "--jobs", did you mean "jobs"?`,
		"cp:\n  retry_for: 1h\n":           `c.yaml line 2: unknown flag "retry_for", did you mean "retry-for"?`,
		"wholly-other: 1\n":                `c.yaml line 1: unknown flag "wholly-other"`,
		"old: 1\n":                         `c.yaml line 1: unknown flag "old"`,
		"cp:\n  then: keep\n":              `c.yaml line 2: cp has no flag "then"; these have it: outbox run`,
		"cpp:\n  jobs: 1\n":                `c.yaml line 1: unknown command "cpp", did you mean "cp"?`,
		"a:\n  jobs: 1\n":                  `c.yaml line 1: unknown command "a": want one of cp, outbox run, outbox put, emulator`,
		"outbox:\n  jobs: 1\n":             `c.yaml line 1: outbox has several commands: want one of outbox run, outbox put`,
		"jobs:\n  cp: 1\n":                 `c.yaml line 1: jobs is a flag: want its value, and not a section`,
		"cp: true\n":                       `c.yaml line 1: cp is a command: want a section with its flags`,
		"cp:\n":                            `c.yaml line 1: cp is a command: want a section with its flags`,
		"jobs: many\n":                     `c.yaml line 1: jobs "many": want a whole number (for cp)`,
		"cp:\n  jobs: 1.5\n":               `c.yaml line 2: jobs "1.5": want a whole number`,
		"jobs: 010\n":                      `c.yaml line 1: jobs "010": want a decimal number without leading zeros`, // 8 for YAML 1.1
		"cp:\n  jobs: 0x10\n":              `c.yaml line 2: jobs "0x10": want a decimal number without leading zeros`,
		"jobs: 1_000\n":                    `c.yaml line 1: jobs "1_000": want a decimal number without leading zeros`,
		"cp:\n  skip: 0o10\n":              `c.yaml line 2: skip "0o10": want a decimal number without leading zeros`,
		"cp:\n  retry-for: 90\n":           `c.yaml line 2: retry-for "90": want a duration with its unit, such as 90s or 12h`,
		"cp:\n  quiet: 1\n":                `c.yaml line 2: quiet "1": want true or false`,
		"cp:\n  quiet: \"true\"\n":         `c.yaml line 2: quiet "true": want true or false`,
		"quiet: yes\n":                     `c.yaml line 1: quiet "yes": want true or false; yes is a text in YAML 1.2`,
		"cp:\n  endpoint: true\n":          `c.yaml line 2: endpoint: true and false are no values of it; put a text in quotes`,
		"cp:\n  endpoint: [a, b]\n":        `c.yaml line 2: endpoint: want one value, and not a list`,
		"exclude: [a, [b]]\n":              `c.yaml line 1: exclude: want one value`,
		"exclude:\n- a\n- {b: c}\n":        `c.yaml line 3: exclude: want one value`,
		"cp:\n  jobs:\n":                   `c.yaml line 2: jobs has no value: want a whole number`,
		"cp:\n  cp:\n    jobs: 1\n":        `c.yaml line 2: unknown flag "cp"`,
		"jobs: 1\n\njobs: 2\n":             `c.yaml line 3: jobs is also in line 1: remove one of them`,
		"cp:\n  jobs: 1\ncp:\n":            `c.yaml line 3: cp is also in line 1: remove one of them`,
		"secret: hunter2\n":                `c.yaml line 1: secret: its value may be a secret`,
		"cp:\n  secret: [hunter2]\n":       `c.yaml line 2: secret: its value may be a secret`,
		"- jobs\n":                         `c.yaml line 1: want lines such as jobs: 8`,
		"jobs\n":                           `c.yaml line 1: want lines such as jobs: 8`,
		"jobs: 1\n---\njobs: 2\n":          `c.yaml line 2: a second document: want one`,
		"[a]: 1\n":                         `c.yaml line 1: want the name of a flag or of a command`,
		"cp: &a {jobs: 1}\n<<: *a\n":       `c.yaml line 2: want the name of a flag or of a command`,
		"jobs: 1\n\tcp: 2\n":               `c.yaml line 2: found `,
		"@jobs: 1\n":                       `c.yaml line 1: found character that cannot start any token`,
		"jobs: 1: 2\n":                     `c.yaml line 1: mapping values are not allowed in this context`,
		"quiet: true\njobs: }\n":           `c.yaml line 2: did not find expected node content`,
		"quiet: true\n- a\nx: 1\n":         `c.yaml line 2: did not find expected key`,
		"jobs: \"8\nquiet: true\n":         `c.yaml line 1: found unexpected end of stream`, // where the quote is
		"jobs: 1\n\nexclude: [a,\n b\n":    `c.yaml line 3: did not find expected ',' or ']'`,
		"jobs: 1\n---\njobs: }\n":          `c.yaml line 3: did not find expected node content`,
		"jobs: 1\njobs: *none\n":           `c.yaml line 2: unknown anchor 'none' referenced`,
		"jobs: 1\ncp: {jobs: 2\n":          `c.yaml line 2: `,
		"jobs: \x00\n":                     `c.yaml line 1: `,
		"cp:\n  state-dir: ~\n":            `c.yaml line 2: state-dir: ~ means no value in YAML: want DIR; write the path of the home directory`,
		"cp:\n  state-dir: ~/x\n":          `c.yaml line 2: state-dir "~/x": ~ is not expanded; write the path of the home directory`,
		"jobs: ~\n":                        `c.yaml line 1: jobs: ~ means no value in YAML: want a whole number`,
		"cp:\n  quiet: Off\n":              `c.yaml line 2: quiet "Off": want true or false; Off is a text in YAML 1.2`,
		strings.Repeat("\n", 1000) + "}\n": `c.yaml: did not find expected node content`,
		"a: &a [*a]\n":                     ``,
		"exclude: &a [*a]\n":               ``,
		"cp: &a\n  exclude: [b, *a]\n":     ``,
		strings.Repeat("[", 20_000) + "\n": ``,
	} {
		f, err := configfile.Parse("c.yaml", []byte(text), commands(), refused)
		if err == nil || !strings.HasPrefix(err.Error(), want) || exit.Classify(err).Code != exit.Usage {
			t.Errorf("%.40q: error %v, want %s", text, err, want)
		}
		if f == nil {
			t.Errorf("%.40q: no file", text)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%.40q: the error has the secret: %v", text, err)
		}
	}
}

// FuzzParse checks that no file makes the program panic, and that what is accepted can be set.
func FuzzParse(f *testing.F) {
	f.Add("jobs: 8\ncp:\n  exclude: [a, b]\n  skip: true\n")
	f.Add("cp: &a\n  jobs: 1\noutbox run: *a\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := configfile.Parse("c.yaml", []byte(text), commands(), refused)
		if err != nil {
			return
		}
		for _, c := range commands() {
			for _, layer := range file.Layers(c.Name) {
				for name, value := range layer {
					if flag := c.Flags.Lookup(name); flag == nil {
						continue // of another command
					} else if err := value.Apply(c.Flags, flag); err != nil {
						t.Errorf("%q: %v", text, err)
					}
				}
			}
		}
	})
}
