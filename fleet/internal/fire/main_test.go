//go:build linux

package fire_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gcsup/internal/testsize"
)

// The programs, built once for all tests.
var gcsup, gcsupFleet, natsServer string

var (
	seeds     = flag.Int("fire-seeds", 1, "how many fleets to test")
	firstSeed = flag.Uint64("fire-seed", 0, "seed of the first fleet; each further fleet has the next one; 0 chooses a seed and prints it")
	// The overlay requires another build of the standard library, which takes minutes.
	clocks = flag.Bool("fire-clocks", false, "give each worker a clock that is wrong by up to 15 s")
)

func TestMain(m *testing.M) {
	testsize.Overlap()
	flag.Parse()
	if testing.Short() {
		fmt.Println("left out: tests with real processes, which take many seconds")
		return
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "fire-")
		if err == nil {
			defer os.RemoveAll(dir)
			err = os.Chmod(dir, 0o755) // another user runs the programs, too
		}
		if err == nil {
			err = build(dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// build builds the programs into dir.
func build(dir string) error {
	overlay := []string{}
	if *clocks {
		path, err := wrongClock(dir)
		if err != nil {
			return err
		}
		overlay = []string{"-overlay", path}
	}
	for _, p := range []struct {
		to           *string
		module, name string // the directory of the module, and the package
		flags        []string
	}{
		{&gcsup, "../../..", "gcsup/cmd/gcsup", nil},
		{&gcsupFleet, "../..", "gcsup/fleet/cmd/gcsup-fleet", overlay},
		{&natsServer, "../..", "github.com/nats-io/nats-server/v2", nil},
	} {
		*p.to = filepath.Join(dir, filepath.Base(strings.TrimSuffix(p.name, "/v2")))
		cmd := exec.Command("go", append(append([]string{"build", "-o", *p.to}, p.flags...), p.name)...)
		cmd.Dir = p.module
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", p.name, err, out)
		}
	}
	return nil
}

// clockVariable is the environment variable that sets how far the clock of a program built with
// wrongClock is ahead, in seconds.
const clockVariable = "FIRE_CLOCK"

// wrongClock makes a file for go build -overlay, which changes time.Now of a program by clockVariable.
// The code of the program stays the same.
func wrongClock(dir string) (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	data, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	const read = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	const imports = "import (\n"
	text := string(data)
	if strings.Count(text, read) != 1 || strings.Count(text, imports) != 1 {
		return "", errors.New("the package time of this version of Go reads the clock in another way")
	}
	text = strings.Replace(text, read, read+"\tsec += clockOffset\n", 1)
	text = strings.Replace(text, imports, imports+"\t\"syscall\"\n", 1)
	text += fmt.Sprintf(`
var clockOffset = func() (n int64) {
	text, _ := syscall.Getenv(%q)
	sign := int64(1)
	if len(text) > 0 && text[0] == '-' {
		sign, text = -1, text[1:]
	}
	for _, c := range []byte(text) {
		n = n*10 + int64(c-'0')
	}
	return sign * n
}()
`, clockVariable)
	changed := filepath.Join(dir, "time.go")
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, overlay, 0o600)
}
