package bucketstore

import (
	"strconv"
	"strings"
)

// process identifies a process, so that another one in the same place can find out whether it
// still runs. The zero process is not known.
type process struct {
	place   string // the boot of the system, and the namespaces that its numbers and times depend on
	pid     int    // in that place
	started string // when it started, in the unit of the system: a number may be used again
}

// String returns the text that parseProcess parses, or "" for the zero process.
func (p process) String() string {
	if p.place == "" {
		return ""
	}
	return strings.Join([]string{p.place, strconv.Itoa(p.pid), p.started}, " ")
}

// parseProcess returns the process of a text, which any writer of the bucket can choose. It returns
// the zero process for any other text.
func parseProcess(text string) process {
	fields := strings.Split(text, " ")
	if len(fields) != 3 || fields[0] == "" || fields[2] == "" {
		return process{}
	}
	pid, err := strconv.Atoi(fields[1])
	if err != nil || pid <= 0 {
		return process{}
	}
	return process{fields[0], pid, fields[2]}
}

// died reports whether the process of a lease has ended, as far as this process can find out. A
// process that is stopped, of another place, or not known, counts as alive.
func (s *Store) died(p process) bool {
	return p.place != "" && p.place == s.self.place && s.ended(p)
}
