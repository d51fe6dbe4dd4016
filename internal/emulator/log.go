package emulator

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"gcsup/fakegcs"
)

// requestLog writes a line for each request. It ignores write errors.
func requestLog(w io.Writer, line func(fakegcs.Request) string) func(fakegcs.Request) {
	var mu sync.Mutex
	return func(r fakegcs.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = fmt.Fprintln(w, line(r))
	}
}

// requestText returns a request as a line for people.
func requestText(r fakegcs.Request) string {
	status := fmt.Sprint(r.Status)
	if r.Status == 0 {
		status = "no reply"
	}
	name := r.Bucket + "/" + r.Object
	if strings.ContainsFunc(name, func(c rune) bool { return !strconv.IsPrint(c) }) {
		name = strconv.Quote(name) // a name must not look like another line
	}
	text := fmt.Sprintf("%s %-6s %-13s %s: %s", r.Time.Format("15:04:05.000"), r.Method, r.Op, name, status)
	for _, part := range []struct{ before, value string }{
		{", sent ", r.ContentRange}, {", committed ", r.Range}, {", fault ", string(r.Fault)},
	} {
		if part.value != "" {
			text += part.before + part.value
		}
	}
	if r.Replayed {
		text += ", the first reply again"
	}
	return fmt.Sprintf("%s (%d bytes in, %d out, %v)", text, r.Received, r.Sent, r.Elapsed.Round(time.Microsecond))
}

// requestJSON returns a request as one line of JSON.
func requestJSON(r fakegcs.Request) string {
	line, err := json.Marshal(r)
	if err != nil { // cannot happen: the fields are numbers and text
		return err.Error()
	}
	return string(line)
}
