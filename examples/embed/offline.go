package main

import (
	"log"

	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
)

// offline plays the clerk, so that the example needs no key.
var offline = map[string]model.Client{"script/clerk": play(`
agents:
  clerk:
    - calls: [{name: stock, args: {Name: bolt}}]
    - text: '{"Pieces": 8}'
`)}

func play(replies string) model.Client {
	s, err := script.Parse([]byte(replies))
	if err != nil {
		log.Fatal(err)
	}
	return s.Client("")
}
