package fakegcs

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// controlPrefix is where the server itself is controlled. No bucket name
// begins with an underscore.
const controlPrefix = "/_fakegcs/"

// control answers fakegcs's own paths, which package fakegcs documents.
func (s *Server) control(q *request) *reply {
	path := q.URL.Path
	if strings.HasPrefix(path, "/retry_test") {
		return s.retry.control(q)
	}
	switch q.Method + " " + strings.TrimPrefix(path, controlPrefix) {
	case "GET faults":
		return jsonReply(http.StatusOK, s.FaultReport())
	case "POST faults":
		faults, err := ParseFaults(http.MaxBytesReader(nil, q.Body, metadataLimit))
		if err != nil {
			return textReply(http.StatusBadRequest, err.Error()+"\n")
		}
		s.plan.add(faults)
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
		if err := json.NewDecoder(q.Body).Decode(&move); err != nil {
			return textReply(http.StatusBadRequest, err.Error()+"\n")
		}
		d, err := time.ParseDuration(move.Advance)
		if err != nil || d < 0 {
			return textReply(http.StatusBadRequest, "advance: give a duration such as \"168h\"\n")
		}
		s.Advance(d)
		return jsonReply(http.StatusOK, map[string]time.Time{"now": s.now()})
	case "POST token":
		return s.issueToken()
	}
	return textReply(http.StatusNotFound, "fakegcs: there is no "+q.Method+" "+path+"\n")
}
