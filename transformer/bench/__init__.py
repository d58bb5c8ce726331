"""`transformer bench`: this package beside torch.nn.Transformer, Marian and CTranslate2, on the
same work in turns.
"""
