"""The words that pseudonyms are made of: 64 of each, kind ones, none that says anything of a person."""

__all__ = ["ANIMALS", "QUALITIES"]

QUALITIES = tuple(
    """
    amber azure brave breezy bright brisk calm cheery clever cobalt copper coral cosy crisp curious dapper
    dawn deft eager early fair fleet fresh gentle gilded glad golden green happy hardy hazel honest
    humble indigo ivory jade jolly keen kind lemon lively lucky lunar mellow merry mild mossy nimble
    noble olive opal patient plucky polar proud quick quiet rosy rustic sandy silver sunny swift witty
    """.split()  # noqa: SIM905 - as a list, each word would take a line
)
ANIMALS = tuple(
    """
    badger beaver bison bittern bunting camel civet condor coot crane curlew dingo dipper dormouse eider elk
    ermine falcon ferret finch fox gannet gecko gibbon godwit grouse hare hedgehog heron hoopoe ibex ibis
    jackdaw jay kestrel kiwi koala lapwing lark lemur linnet lynx marmot marten merlin mole newt okapi
    oriole osprey otter petrel pipit plover puffin quail raven robin seal siskin stoat swan tapir wren
    """.split()  # noqa: SIM905 - as a list, each word would take a line
)
