package fakegcs

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gcsup/fakegcs/faults"
)

// controlPrefix is the prefix of the paths that control the server. No bucket name
// begins with an underscore.
const controlPrefix = "/_fakegcs/"

// planLimit bounds the JSON of a fault plan: more than 100,000 faults.
const planLimit = 64 << 20

// newFaults returns the faults to add: a random plan, or those in the body.
func newFaults(q *request) ([]faults.Fault, error) {
	if !q.query.Has("random") {
		return faults.Parse(http.MaxBytesReader(nil, q.Body, planLimit))
	}
	var numbers [3]uint64
	for i, name := range []string{"random", "seed", "size"} {
		n, err := strconv.ParseUint(q.query.Get(name), 10, 63)
		if err != nil {
			return nil, fmt.Errorf("fakegcs: %s: %q is not a whole number; give random (how many faults), seed and size (bytes of an upload)", name, q.query.Get(name))
		}
		numbers[i] = n
	}
	const most = 100_000
	if numbers[0] > most {
		return nil, fmt.Errorf("fakegcs: random: %d faults; at most %d", numbers[0], most)
	}
	return faults.Random(numbers[1], int(numbers[0]), int64(numbers[2])), nil
}

// control serves the paths that control the server; docs/emulator/emulator.md lists them.
func (s *Server) control(q *request) *reply {
	path := q.URL.Path
	if strings.HasPrefix(path, "/retry_test") {
		return s.retry.control(q)
	}
	switch q.Method + " " + strings.TrimPrefix(path, controlPrefix) {
	case "GET ":
		return s.index()
	case "GET faults":
		return jsonReply(http.StatusOK, s.FaultReport())
	case "POST faults":
		faults, err := newFaults(q)
		if err != nil {
			return textReply(http.StatusBadRequest, err.Error()+"\n")
		}
		s.plan.Add(faults)
		return newReply(http.StatusNoContent)
	case "DELETE faults":
		s.ClearFaults()
		return newReply(http.StatusNoContent)
	case "GET requests":
		return jsonReply(http.StatusOK, s.Requests())
	case "GET stats":
		return jsonReply(http.StatusOK, s.Stats())
	case "POST clock":
		var move struct {
			Advance string `json:"advance"`
		}
		err := json.NewDecoder(q.Body).Decode(&move)
		d, badDuration := time.ParseDuration(move.Advance)
		if err != nil || badDuration != nil || d < 0 {
			return textReply(http.StatusBadRequest, "fakegcs: clock: give a duration, such as {\"advance\": \"168h\"}\n")
		}
		s.Advance(d)
		return jsonReply(http.StatusOK, map[string]time.Time{"now": s.now()})
	case "POST token":
		text, _ := io.ReadAll(io.LimitReader(q.Body, metadataLimit))
		form, _ := url.ParseQuery(string(text)) // a token without a principal is better than none
		return s.tokens.issue(form, s.now())
	}
	return textReply(http.StatusNotFound, "fakegcs: there is no "+q.Method+" "+path+"\n")
}
