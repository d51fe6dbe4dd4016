package suites

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// row is the last recorded result of a client. The counts are 0 if the client is a program that its
// script checks, and not a test suite.
type row struct {
	Version string `json:"version"`
	Date    string `json:"date"`
	Passed  int    `json:"passed,omitempty"`
	Failed  int    `json:"failed,omitempty"`
	Skipped int    `json:"skipped,omitempty"`
}

// readRows returns the recorded results by client.
func readRows(file string) (map[string]row, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return map[string]row{}, nil
	}
	if err != nil {
		return nil, err
	}
	rows := map[string]row{}
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return rows, nil
}

// record replaces the result of a client.
func record(file, client string, r row) error {
	if r.Version == "" {
		return fmt.Errorf("the version of %s is unknown: give -version", client)
	}
	rows, err := readRows(file)
	if err != nil {
		return err
	}
	rows[client] = r
	text, err := json.MarshalIndent(rows, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// clients are the clients in the order of the table, and what their runs show.
var clients = []struct{ name, what, shows string }{
	{"official", "Go `cloud.google.com/go/storage`", "uploads, reads, lists, composes, copies, deletes; with faults and lost replies"},
	{"suite-go", "its retry conformance tests and emulator tests, without gRPC", ""},
	{"suite-go-system", "its integration tests, without gRPC", ""},
	{"node", "Node.js `@google-cloud/storage`", "uploads, reads, lists, copies, deletes; with a 503 and a short commit"},
	{"suite-node", "its retry conformance tests", ""},
	{"suite-node-system", "its system tests", ""},
	{"suite-python", "Python `google-cloud-storage`: its retry conformance tests", ""},
	{"suite-python-system", "its system tests, without gRPC", ""},
	{"suite-gcsfs", "Python `gcsfs`: its tests", ""},
	{"suite-docker", "Docker `distribution`: the tests of its storage driver", ""},
	{"gcloud", "`gcloud storage`", "uploads, resumes after a kill, composes, reads, moves, deletes"},
	{"gsutil", "`gsutil`", "uploads, lists, moves, reads, deletes"},
	{"rclone", "`rclone`", "copies, checks, moves, deletes; with faults and lost replies"},
	{"restic", "`restic`", "backs up, checks, restores, prunes; with faults and lost replies"},
}

// table returns the table of the recorded results.
func table(rows map[string]row) string {
	var b strings.Builder
	b.WriteString("| client | version | result | date |\n|---|---|---|---|\n")
	for _, c := range clients {
		r, ok := rows[c.name]
		result := c.shows
		switch {
		case !ok:
			r, result = row{Version: "–", Date: "–"}, "not recorded"
		case result == "":
			result = fmt.Sprintf("%d pass", r.Passed)
			if r.Failed > 0 {
				result += fmt.Sprintf(", %d fail as [listed](../../internal/compat/%s.txt)", r.Failed, c.name)
			}
			if r.Skipped > 0 {
				result += fmt.Sprintf(", %d are skipped", r.Skipped)
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.what, r.Version, result, r.Date)
	}
	return b.String()
}

const (
	tableBegins = "<!-- make compat-table writes this table -->\n"
	tableEnds   = "<!-- end of the table -->\n"
)

// replaceTable returns the page with another table between its markers.
func replaceTable(page []byte, table string) ([]byte, error) {
	before, rest, begins := bytes.Cut(page, []byte(tableBegins))
	_, after, ends := bytes.Cut(rest, []byte(tableEnds))
	if !begins || !ends {
		return nil, errors.New("the markers of the table are missing")
	}
	return bytes.Join([][]byte{before, []byte(tableBegins), []byte(table), []byte(tableEnds), after}, nil), nil
}

// writeTable writes the table of the recorded results into a page.
func writeTable(recorded, page string) error {
	rows, err := readRows(recorded)
	if err != nil {
		return err
	}
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	text, err := replaceTable(old, table(rows))
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, text, 0o644)
}
