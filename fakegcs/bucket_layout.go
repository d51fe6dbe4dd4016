package fakegcs

import "net/http"

// storageLayout answers how a bucket is organized, which gcloud asks before it
// moves an object: always flat.
// https://cloud.google.com/storage/docs/json_api/v1/buckets/getStorageLayout
func (s *Server) storageLayout(q *request) *reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bucketLocked(q.bucket)
	if err != nil {
		return err.reply(q.xml)
	}
	var layout struct {
		Kind                  string `json:"kind"`
		Bucket                string `json:"bucket"`
		Location              string `json:"location"`
		LocationType          string `json:"locationType"`
		HierarchicalNamespace struct {
			Enabled bool `json:"enabled"`
		} `json:"hierarchicalNamespace"`
	}
	layout.Kind, layout.Bucket, layout.Location, layout.LocationType = "storage#storageLayout", b.Name, b.Location, b.LocationType
	return jsonReply(http.StatusOK, layout)
}
