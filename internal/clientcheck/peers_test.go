package clientcheck

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"gcsup/internal/require"
)

var update = flag.Bool("update", false, "write the clients that were checked into docs/emulator/emulator.md")

// peer is a client of others that was checked.
type peer struct {
	Client  string `json:"client"`
	Version string `json:"version"`
	Command string `json:"command"` // or what a program calls
	Passed  int    `json:"passed"`
	Unmet   int    `json:"unmet"`
	// Failed are the scripts that the client failed. Each belongs to one of Faults.
	Failed []string    `json:"failed"`
	Faults []peerFault `json:"faults"`
}

// peerFault is what a client does wrong.
type peerFault struct {
	Scripts []string `json:"scripts"`
	Does    string   `json:"does"`
	// Code is where a person has read in the client's code that it does so. A failure that was not
	// read there is not published.
	Code string `json:"code"`
}

// TestPeers compares docs/emulator/emulator.md with testdata/peers.json. The latter has the results of gcsup
// emulator check-client --json.
func TestPeers(t *testing.T) {
	text, err := os.ReadFile("testdata/peers.json")
	require.NoError(t, err)
	var peers []peer
	require.NoError(t, json.Unmarshal(text, &peers))
	for _, p := range peers {
		p.check(t)
	}
	const page, end = "../../docs/emulator/emulator.md", "<!-- end of the clients -->\n"
	const begin = "<!-- go test ./internal/clientcheck -run TestPeers -update writes this -->\n"
	text, err = os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := bytes.Cut(text, []byte(begin))
	was, after, ended := bytes.Cut(rest, []byte(end))
	table := peerTable(peers)
	switch {
	case !found || !ended:
		t.Fatalf("%s has no place for the table", page)
	case string(was) == table:
	case *update:
		text = slices.Concat(before, []byte(begin), []byte(table), []byte(end), after)
		require.NoError(t, os.WriteFile(page, text, 0o644))
	default:
		t.Errorf("the table in %s is old; run go test -run TestPeers -update\n%s", page, table)
	}
}

// check checks that each failed script is one of a fault, and that a person has found it in the code.
func (p peer) check(t *testing.T) {
	var named []string
	for _, f := range p.Faults {
		named = append(named, f.Scripts...)
		if f.Does == "" || f.Code == "" {
			t.Errorf("%s, %v: what the client does, or where, is missing", p.Client, f.Scripts)
		}
	}
	slices.Sort(named)
	failed := slices.Sorted(slices.Values(p.Failed))
	if !slices.Equal(named, failed) {
		t.Errorf("%s failed %v, and its faults name %v", p.Client, failed, named)
	}
	for _, name := range failed {
		script(t, name)
	}
	if n := p.Passed + p.Unmet + len(p.Failed); n != len(Scripts()) {
		t.Errorf("%s ran %d scripts, and there are %d: check it again", p.Client, n, len(Scripts()))
	}
}

// peerTable returns the table of the document.
func peerTable(peers []peer) string {
	var b strings.Builder
	b.WriteString("| client | version | passed | failed | unmet | used as |\n|---|---|---|---|---|---|\n")
	for _, p := range peers {
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | `%s` |\n",
			p.Client, p.Version, p.Passed, len(p.Failed), p.Unmet, p.Command)
	}
	return b.String()
}
